-- children: what waits for some jobs, or has.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from jobs as parent
  join edges on edges.parent = parent.seq
  join jobs as child on child.seq = edges.child
 where parent.id in (select value from json_each(:ids))
 order by parent.seq, child.seq
 limit :limit
