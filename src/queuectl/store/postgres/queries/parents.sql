-- parents: what some jobs wait for, or have waited for.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from queuectl.jobs as child
  join queuectl.edges on edges.child = child.seq
  join queuectl.jobs as parent on parent.seq = edges.parent
 where child.id = any(%(ids)s)
 order by child.seq, parent.seq
 limit %(limit)s
