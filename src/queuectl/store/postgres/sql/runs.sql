-- name: start
-- Record that the processes of claimed jobs were started, and again when they have printed something: `log` is null before.
-- The token suffices: a job has one exactly while it runs. (With a condition on the state, the planner might scan all running jobs.)
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
-- Write the ends of runs. Matches nothing if the job has another token (see `start`) or if the worker is fenced; null: another
-- process writes for it. Each end is given twice: as the worker saw it, and as it is if a cancel was recorded; the row chooses.
-- (SQLite reads, and writes one by one; here that would be a round trip each.) Its webhooks are added to the outbox, see
-- store/webhook_outbox.py. A job that waits again keeps its position; enqueues while it ran do not count for its rank
-- (`missed`), also after its last run: it may be retried.
with present as (
    select meta.ageing = 'enqueues' as by_enqueues,
           (select case when is_called then last_value else 0 end from queuectl.jobs_seq_seq) as last_seq
      from queuectl.meta
),
written as (
    update queuectl.jobs
       set state = input.state,
           ready = input.is_due and not held,
           ready_since = pg_current_xact_id(),
           token = null,
           pid = coalesce(input.pid, jobs.pid),
           cancel_requested = false,
           attempts = input.attempts,
           crashes = input.crashes,
           missed = missed + last_seq - claimed_seq,
           rank = rank + case when by_enqueues then last_seq - claimed_seq else 0 end,
           effective_priority = case when input.waits then null else effective_priority end,
           run_at = coalesce(input.retry_at, run_at),
           started_at = greatest(coalesce(input.started_at, jobs.started_at), created_at),
           wait_ms = case
               when input.started_at is null then wait_ms
               else greatest(0, input.started_at - greatest(created_at, run_at))
           end,
           finished_at = greatest(input.finished_at, coalesce(input.started_at, jobs.started_at), created_at),
           duration_ms = input.duration_ms,
           exit_code = input.exit_code,
           signal = input.signal,
           error = input.error,
           ending = input.ending,
           log = coalesce(input.log, jobs.log),
           log_from = coalesce(input.log_from, jobs.log_from),
           log_to = input.log_to,
           usage = input.usage,
           last_output = input.last_output,
           fingerprint = input.fingerprint,
           updated_at = greatest(%(now)s, created_at)
      from present,
           json_to_recordset(%(ends)s::json) as input (
               is_cancel boolean, seq bigint, token text,
               state text, ending text, waits boolean, is_due boolean, retry_at bigint,
               attempts integer, crashes integer, exit_code integer, signal integer, error text,
               started_at bigint, finished_at bigint, duration_ms bigint, pid bigint, log_from bigint, log_to bigint,
               log text, usage text, last_output text, fingerprint text, webhooks json
           )
     where jobs.seq = input.seq
       and jobs.token = input.token
       and jobs.cancel_requested = input.is_cancel
       and not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')
    returning input.token, input.is_cancel, jobs.queue, jobs.state,
              coalesce(jobs.ending, case jobs.state when 'dead' then 'refused' else 'given back' end) as ending, input.webhooks
),
noted as (
    insert into queuectl.webhook_outbox (job, run, event, url, origin, at)
    select delivery.job, delivery.run, delivery.event, delivery.url, delivery.origin, delivery.at
      from written
     cross join lateral json_to_recordset(written.webhooks)
        as delivery (job text, run integer, event text, url text, origin text, at bigint)
     where written.webhooks is not null
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
-- Whether the run with this token was settled. Only for a worker that sent an end and lost the connection before the answer.
-- (SQLite has no connection to lose.)
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
-- Copy the latest run of each of these jobs, if it has ended and was not copied, to `runs`: the job's row is about to be
-- overwritten. (`claim` does the same for the jobs it claims.)
insert into queuectl.runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
    token, usage, last_output
)
select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to,
       last_token, usage, last_output
  from queuectl.jobs
 where seq = any(%(seq)s)
   and ending is not null

-- name: hold_runs
-- The runs of a worker that is to be rescued, locked in order: a concurrent cancel waits, and finds them ended. (SQLite has one
-- writer.)
select seq
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
 order by seq
   for update

-- name: running
-- The claims of a worker. The log, which may not exist yet, is in the data directory of the worker.
select seq, id, token, runs, command, argv, queue, attempts, crashes, max_retries, first_is_free, backoff_base, timeout_ms,
       cwd, env, key, coalesce((select home from queuectl.workers where id = %(worker)s) || '/logs/' || id || '.log', log, ''),
       cancel_requested, depends_on, hooks, limits, secrets
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
 order by seq

-- name: add_output
-- Store pieces of output. Changes nothing if the job has another token (see `start`) or if the worker is fenced. If a piece is
-- sent again because the answer was lost, it may be longer: the longer one stays.
insert into queuectl.output (job, run, at, data)
select jobs.seq, jobs.runs, input.at, input.data
  from unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(ats)s::bigint[], %(data)b::bytea[])
    as input (seq, token, at, data)
  join queuectl.jobs on jobs.seq = input.seq
   and jobs.token = input.token
 where not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')
    on conflict (job, run, at) do update
   set data = excluded.data
 where length(excluded.data) > length(output.data)

-- name: drop_output
-- Remove output that ends at or before an offset. Changes nothing if the job has another
-- token, or if the worker is fenced.
delete from queuectl.output
 using unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(keep_from)s::bigint[]) as input (seq, token, keep_from)
  join queuectl.jobs on jobs.seq = input.seq
   and jobs.token = input.token
 where output.job = jobs.seq
   and output.run = jobs.runs
   and output.at < input.keep_from
   and output.at + length(output.data) <= input.keep_from
   and not exists (select 1 from queuectl.workers where id = %(worker)s and state = 'lost')

-- name: take_deliveries
-- The oldest rows of the webhook outbox, without those that another worker is reading. (SQLite has one writer.)
delete from queuectl.webhook_outbox
 where ctid = any(array(select ctid from queuectl.webhook_outbox limit %(limit)s for update skip locked))
returning at, job, run, event, url, origin

-- name: histories
-- The runs of some jobs except those that are stored in the jobs' rows.
select job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage, last_output
  from queuectl.runs
 where job = any(%(seqs)s)
 order by job, number

-- name: latest_runs
-- For some jobs, the run that is stored in the job's row, and the path of its log.
select id, log, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error,
       coalesce(ending, 'running'), log_from, log_to, usage, last_output
  from queuectl.jobs
 where id = any(%(ids)s)
   and (state = 'processing' or ending is not null)

-- name: output
-- The stored output of a run, from a byte on; the first piece may begin before it.
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
