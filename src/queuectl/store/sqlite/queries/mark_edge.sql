-- mark_edge: what has become of an edge. Positional: state, child, parent.
update edges
   set state = ?
 where child = ?
   and parent = ?
