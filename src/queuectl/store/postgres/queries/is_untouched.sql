-- is_untouched: has there never been a job, a setting, a schedule or an alert here? Every job that ever came has left its mark in `moves`.
select not exists (select 1 from queuectl.jobs)
   and not exists (select 1 from queuectl.runs)
   and not exists (select 1 from queuectl.config)
   and not exists (select 1 from queuectl.queues)
   and not exists (select 1 from queuectl.moves)
   and not exists (select 1 from queuectl.batches)
   and not exists (select 1 from queuectl.schedules)
   and not exists (select 1 from queuectl.alerts)
