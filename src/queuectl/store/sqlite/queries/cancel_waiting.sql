-- cancel_waiting: call off a job that does not run. Its last run, if there was one, has been archived: what the job's row
-- shows of it stays as it was but for the error, which says why.
update jobs
   set state = 'cancelled',
       ready = 0,
       aside = 0,
       effective_priority = :effective_priority,
       error = :error,
       ending = null,
       finished_at = max(:now, created_at, coalesce(started_at, created_at)),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state in ('blocked', 'pending', 'failed')
