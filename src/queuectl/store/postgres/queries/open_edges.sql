-- open_edges: the edges of some jobs, which are locked, that may still change. (SQLite tells one child at a time: is_waiting.sql.)
select parent, child, need, otherwise, state
  from queuectl.edges
 where child = any(%(children)s)
   and state in ('waiting', 'broke')
 order by child, parent
