-- mark_edge: what has become of edges. (SQLite writes one by one, as in settle.sql.)
update queuectl.edges
   set state = told.state
  from json_to_recordset(%(told)s::json) as told (child bigint, parent bigint, state text)
 where edges.child = told.child
   and edges.parent = told.parent
