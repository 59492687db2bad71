-- children: what waits for some jobs, or has.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from queuectl.jobs as parent
  join queuectl.edges on edges.parent = parent.seq
  join queuectl.jobs as child on child.seq = edges.child
 where parent.id = any(%(ids)s)
 order by parent.seq, child.seq
 limit %(limit)s
