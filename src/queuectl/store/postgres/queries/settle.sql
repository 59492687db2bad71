-- settle: write the ends of runs. Matches nothing if the job has passed to somebody else (the token says all, see start.sql)
-- or if the worker is fenced; null: somebody else writes, in its place.
-- Each end comes twice: as the worker saw it, and as it is if somebody called the job off; what is recorded in the row
-- chooses. (SQLite asks, and writes one by one; here that would be a round trip each.)
-- Whom to tell of the end is noted with it, see store/calling.py.
-- A job that waits again keeps its place; enqueues that came while it ran earn it nothing (`missed`), also if this was
-- its last run: it may be revived.
with present as (
    select meta.ageing = 'enqueues' as by_enqueues,
           (select case when is_called then last_value else 0 end from queuectl.jobs_seq_seq) as last_seq
      from queuectl.meta
),
written as (
    update queuectl.jobs
       set state = told.state,
           ready = told.is_due and not held,
           ready_since = pg_current_xact_id(),
           token = null,
           pid = coalesce(told.pid, jobs.pid),
           cancel_requested = false,
           attempts = told.attempts,
           crashes = told.crashes,
           missed = missed + last_seq - claimed_seq,
           rank = rank + case when by_enqueues then last_seq - claimed_seq else 0 end,
           effective_priority = case when told.waits then null else effective_priority end,
           run_at = coalesce(told.retry_at, run_at),
           started_at = greatest(coalesce(told.started_at, jobs.started_at), created_at),
           wait_ms = case
               when told.started_at is null then wait_ms
               else greatest(0, told.started_at - greatest(created_at, run_at))
           end,
           finished_at = greatest(told.finished_at, coalesce(told.started_at, jobs.started_at), created_at),
           duration_ms = told.duration_ms,
           exit_code = told.exit_code,
           signal = told.signal,
           error = told.error,
           ending = told.ending,
           log_from = coalesce(told.log_from, jobs.log_from),
           log_to = told.log_to,
           usage = told.usage,
           updated_at = greatest(%(now)s, created_at)
      from present,
           json_to_recordset(%(ends)s::json) as told (
               called_off boolean, seq bigint, token text,
               state text, ending text, waits boolean, is_due boolean, retry_at bigint,
               attempts integer, crashes integer, exit_code integer, signal integer, error text,
               started_at bigint, finished_at bigint, duration_ms bigint, pid bigint, log_from bigint, log_to bigint,
               usage text, calls json
           )
     where jobs.seq = told.seq
       and jobs.token = told.token
       and jobs.cancel_requested = told.called_off
       and not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')
    returning told.token, told.called_off, jobs.queue, jobs.state,
              coalesce(jobs.ending, case jobs.state when 'dead' then 'refused' else 'given back' end) as ending, told.calls
),
noted as (
    insert into queuectl.calls (job, run, happening, url, said, at)
    select call.job, call.run, call.happening, call.url, call.said, call.at
      from written
     cross join lateral json_to_recordset(written.calls)
        as call (job text, run integer, happening text, url text, said text, at bigint)
     where written.calls is not null
),
counted as (
    insert into queuectl.moves (queue, was, now, ending, jobs)
    select queue, 'processing', state, ending, count(*)
      from written
     group by queue, state, ending
),
worked as (
    insert into queuectl.done (worker, jobs)
    select %(worker)s::text, count(*)
      from written
     where state in ('completed', 'dead', 'cancelled')
       and %(worker)s::text is not null
    having count(*) > 0
)
select token, called_off
  from written
