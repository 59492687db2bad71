-- moved: count jobs that moved from one state to another. See the table `moves`. Positional, see store/counting.py.
insert into moves (queue, was, now, ending, jobs)
values (?, ?, ?, ?, ?)
on conflict (queue, was, now, ending) do update set jobs = jobs + excluded.jobs
