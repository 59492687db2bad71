-- note_undecided: find all parents whose children have not been told, in a store that was filled row by row.
insert into queuectl.undecided (parent)
select distinct edges.parent
  from queuectl.edges
  join queuectl.jobs on jobs.seq = edges.parent
 where (edges.state = 'waiting' and jobs.state in ('completed', 'dead', 'cancelled'))
    or (edges.state = 'broke' and jobs.state not in ('dead', 'cancelled'))
