-- cancel_waiting: cancel jobs that do not run. The last run of each, if there was one, has been archived: what the job's row
-- shows of it stays as it was but for the error, which says why. (SQLite takes one at a time: there a statement costs no round trip.)
-- `is true` keeps the planner from an index of all jobs in these states.
update queuectl.jobs
   set state = 'cancelled',
       ready = false,
       aside = false,
       effective_priority = waiting.points,
       error = %(error)s,
       ending = null,
       finished_at = greatest(%(now)s, created_at, started_at),
       updated_at = greatest(%(now)s, created_at)
  from unnest(%(seqs)s::bigint[], %(points)s::bigint[]) as waiting (seq, points)
 where jobs.seq = any(%(seqs)s)
   and jobs.seq = waiting.seq
   and (state in ('blocked', 'pending', 'failed')) is true
