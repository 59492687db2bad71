-- cancel_waiting: call off a job that does not run. Its last run, if there was one, has been archived: what the job's row
-- shows of it stays as it was but for the error.
update queuectl.jobs
   set state = 'cancelled',
       ready = false,
       effective_priority = %(effective_priority)s,
       error = 'cancelled',
       ending = null,
       finished_at = greatest(%(now)s, created_at, started_at),
       updated_at = greatest(%(now)s, created_at)
 where seq = %(seq)s
   and state in ('blocked', 'pending', 'failed')
