-- name: start
-- The processes of claimed jobs exist, and may have printed something. Written again when they have: `log` is null before that. The token says all: a job has one exactly while it runs. (Were the state named
-- too, the planner might go through all that run, by the index on those, to find one.)
update queuectl.jobs
   set pid = start.pid,
       log = coalesce(start.log, jobs.log),
       log_from = coalesce(start.log_from, jobs.log_from),
       started_at = case when jobs.pid is null then greatest(start.started_at, created_at) else jobs.started_at end,
       wait_ms = case when jobs.pid is null then greatest(0, start.started_at - greatest(created_at, run_at)) else wait_ms end
  from json_to_recordset(%(starts)s::json)
    as start (seq bigint, token text, pid bigint, log text, log_from bigint, started_at bigint)
 where jobs.seq = start.seq
   and jobs.token = start.token
   and not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')

-- name: settle
-- Write the ends of runs. Matches nothing if the job has another token (see `start`)
-- or if the worker is fenced; null: another process writes for it.
-- Each end comes twice: as the worker saw it, and as it is if a cancel was recorded; the row
-- chooses. (SQLite asks, and writes one by one; here that would be a round trip each.)
-- Its webhooks are added to the outbox, see store/webhook_outbox.py.
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
           log = coalesce(told.log, jobs.log),
           log_from = coalesce(told.log_from, jobs.log_from),
           log_to = told.log_to,
           usage = told.usage,
           updated_at = greatest(%(now)s, created_at)
      from present,
           json_to_recordset(%(ends)s::json) as told (
               is_cancel boolean, seq bigint, token text,
               state text, ending text, waits boolean, is_due boolean, retry_at bigint,
               attempts integer, crashes integer, exit_code integer, signal integer, error text,
               started_at bigint, finished_at bigint, duration_ms bigint, pid bigint, log_from bigint, log_to bigint,
               log text, usage text, calls json
           )
     where jobs.seq = told.seq
       and jobs.token = told.token
       and jobs.cancel_requested = told.is_cancel
       and not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')
    returning told.token, told.is_cancel, jobs.queue, jobs.state,
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
select token, is_cancel
  from written

-- name: was_settled
-- Was the run with this token settled? Asked only by a worker that sent an end and lost
-- the connection before the answer. (SQLite has no connection that could be lost.)
select ending
  from queuectl.jobs
 where seq = %(seq)s
   and last_token = %(token)s
   and (ending is not null or state = 'dead')  -- dead without one: refused, see `unrun`
union all
select ending
  from queuectl.runs
 where job = %(seq)s
   and token = %(token)s

-- name: archive
-- The latest run of each of these jobs, if it is over and not there yet, becomes a row of `runs`: the job's row is
-- about to lose it. (`claim` does the same for those it claims.)
insert into queuectl.runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
    token, usage
)
select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
       last_token, usage
  from queuectl.jobs
 where seq = any(%(seq)s)
   and ending is not null

-- name: hold_runs
-- The runs of a worker that is to be rescued, locked in order: a cancel that comes now waits, and finds them ended.
-- (SQLite has one writer.)
select seq
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
 order by seq
   for update

-- name: running
-- What a worker holds. Its log, which may not exist yet, is in the data directory of the worker.
select seq, id, token, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, key, coalesce((select home from queuectl.workers where id = %(worker)s) || '/logs/' || id || '.log', log, ''),
       cancel_requested, depends_on, hooks, limits, secrets
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
 order by seq

-- name: add_output
-- Store pieces of output. Changes nothing if the job has another token (see
-- `start`) or if the worker is fenced. Told twice, since the first answer got lost, the second time more may have been
-- printed: the longer one stays.
insert into queuectl.output (job, run, at, data)
select jobs.seq, jobs.runs, told.at, told.data
  from unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(ats)s::bigint[], %(data)b::bytea[])
    as told (seq, token, at, data)
  join queuectl.jobs on jobs.seq = told.seq
   and jobs.token = told.token
 where not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')
    on conflict (job, run, at) do update
   set data = excluded.data
 where length(excluded.data) > length(output.data)

-- name: drop_output
-- Remove output that ends at or before an offset. Changes nothing if the job has another
-- token, or if the worker is fenced.
delete from queuectl.output
 using unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(keep_from)s::bigint[]) as told (seq, token, keep_from)
  join queuectl.jobs on jobs.seq = told.seq
   and jobs.token = told.token
 where output.job = jobs.seq
   and output.run = jobs.runs
   and output.at < told.keep_from
   and output.at + length(output.data) <= told.keep_from
   and not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')

-- name: take_calls
-- Who is to be told, for as many jobs as are made at a time. What another is just taking is left to it. (SQLite has one
-- writer.)
delete from queuectl.calls
 where ctid = any(array(select ctid from queuectl.calls limit %(limit)s for update skip locked))
returning at, job, run, happening, url, said

-- name: histories
-- The runs of some jobs but for those that stand in the jobs' rows.
select job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage
  from queuectl.runs
 where job = any(%(seqs)s)
 order by job, number

-- name: latest_runs
-- Of some jobs, the run that stands in the row of each, and where its log is.
select id, log, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error,
       coalesce(ending, 'running'), log_from, log_to, usage
  from queuectl.jobs
 where id = any(%(ids)s)
   and (state = 'processing' or ending is not null)

-- name: output
-- What is kept of what a run printed, from a byte on; the first piece may begin before it.
with job as (
    select seq
      from queuectl.jobs
     where id = %(id)s
)
select at, data
  from queuectl.output
 where job = (select seq from job)
   and run = %(run)s
   and at >= coalesce(
       (select max(at) from queuectl.output where job = (select seq from job) and run = %(run)s and at <= %(start)s), 0
   )
   and at + length(data) > %(start)s
 order by at
 limit %(limit)s
