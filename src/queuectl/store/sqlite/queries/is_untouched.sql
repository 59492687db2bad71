-- is_untouched: has there never been a job, a setting, a schedule or an alert here? Every job that ever came has left its mark in `moves`.
select not exists (select 1 from jobs)
   and not exists (select 1 from runs)
   and not exists (select 1 from config)
   and not exists (select 1 from queues)
   and not exists (select 1 from moves)
   and not exists (select 1 from batches)
   and not exists (select 1 from schedules)
   and not exists (select 1 from alerts)
