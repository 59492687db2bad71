-- came: count new jobs of a queue. See the table `moves`.
insert into moves (queue, was, now, jobs)
values (?, '', 'pending', ?)
on conflict (queue, was, now) do update set jobs = jobs + excluded.jobs
