-- decidable: edges of a parent that are in a state, with the children they lead to. With a need: only those.
select edges.need, edges.otherwise,
       jobs.seq, jobs.queue, jobs.priority, jobs.eligible_at, jobs.missed, jobs.run_at,
       jobs.unique_key
  from edges indexed by edges_parent
  join jobs on jobs.seq = edges.child
 where edges.parent = :parent
   and edges.state = :state
   and (:need is null or edges.need = :need)
 limit :limit
