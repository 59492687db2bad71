-- note_undecided: find all parents whose children have not been told, in a store that was filled row by row.
insert or ignore into undecided (parent)
select edges.parent
  from edges
  join jobs on jobs.seq = edges.parent
 where (edges.state = 'waiting' and jobs.state in ('completed', 'dead', 'cancelled'))
    or (edges.state = 'broke' and jobs.state not in ('dead', 'cancelled'))
