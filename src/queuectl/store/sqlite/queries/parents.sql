-- parents: what some jobs wait for, or have waited for.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from jobs as child
  join edges on edges.child = child.seq
  join jobs as parent on parent.seq = edges.parent
 where child.id in (select value from json_each(:ids))
 order by child.seq, parent.seq
 limit :limit
