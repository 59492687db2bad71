-- moved: count jobs that moved from one state to another. See the table `moves`.
insert into queuectl.moves (queue, was, now, ending, jobs)
values (%s, %s, %s, %s, %s)
