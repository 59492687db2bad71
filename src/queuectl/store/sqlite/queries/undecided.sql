-- undecided: a parent some of whose children have not been told what became of them.
select undecided.parent, jobs.id, jobs.state
  from undecided
  join jobs on jobs.seq = undecided.parent
 order by undecided.parent
 limit 1
