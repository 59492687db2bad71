-- claim: give jobs to a worker. {candidates} selects and locks the rows; it is one of
--   candidates_any_queue      jobs of all queues, in one order: the common case
--   candidates_named_queues   the queues that the worker names, the first one first
--   candidates_webhooks       webhook deliveries, which do not use slots
--   candidates_chosen         jobs selected before by the limits of their queues
--   candidates_from_cursor    the first two, behind what was claimed before (see claim_cursor.py)
-- Eligible: `ready` (pending or failed, due, not held) and not `aside` (its concurrency key has a free place), by rank, then first in,
-- first out. A lost worker gets nothing. No job is claimed while another one that is due waits for its promotion: it may rank
-- higher. While a queue is paused or limited only `candidates_chosen` finds jobs.
-- Rows that another transaction has locked are skipped: another worker is claiming them. Candidates are read in the order of an index and
-- locked one by one up to the limit, so nothing is locked that is not claimed. (SQLite has one writer and needs none of this.)
-- `started_at` is corrected when the process has started. The previous run, which is stored in the job, becomes a row of `runs`.
with overdue as (
    select 1
      from queuectl.jobs
     where not ready
       and not held
       and state in ('pending', 'failed')
       and run_at <= %(now)s
     order by run_at
     limit 1
       for update skip locked
),
gate as (
    select exists (select 1 from queuectl.workers where id = %(worker)s and state <> 'lost')
           and not exists (select 1 from overdue) as is_open,
           not exists (
               select 1
                 from queuectl.queues
                where paused or concurrency is not null or rate_starts is not null or per_key is not null
           )
           and not exists (
               select 1
                 from queuectl.jobs
                where places is not null
                  and state in ('blocked', 'pending', 'processing', 'failed')
           ) as is_unlimited
),
{candidates},
selected as (
    select *, row_number() over (order by turn, rank, seq) as place
      from candidates
),
archived as (
    insert into queuectl.runs (
        job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from,
        log_to, token, usage
    )
    select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from,
           log_to, last_token, usage
      from selected
     where ending is not null
),
counted as (
    insert into queuectl.moves (queue, was, now, ending, jobs)
    select queue, state, 'processing', '', count(*)
      from selected
     group by queue, state
),
present as (
    select ageing, step_ms,
           (select case when is_called then last_value else 0 end from queuectl.jobs_seq_seq) as last_seq
      from queuectl.meta
)
update queuectl.jobs
   set state = 'processing',
       ready = false,
       token = (%(tokens)s::text[])[selected.place],
       last_token = (%(tokens)s::text[])[selected.place],
       worker = %(worker)s,
       host = %(host)s,
       pid = null,
       claimed_seq = present.last_seq,
       cancel_requested = false,
       -- the SQL twin of effective_priority in job/rank.py
       effective_priority = selected.priority + case present.ageing
           when 'off' then 0
           when 'enqueues' then greatest(0, present.last_seq - selected.seq - selected.missed)
           else greatest(0, %(now)s - selected.eligible_at) / present.step_ms
       end,
       runs = selected.runs + 1,
       started_at = greatest(%(now)s, selected.created_at),
       wait_ms = greatest(0, %(now)s - greatest(selected.created_at, selected.run_at)),
       finished_at = null,
       duration_ms = null,
       exit_code = null,
       signal = null,
       error = null,
       ending = null,
       log = %(logs)s || '/' || selected.id || '.log',
       log_from = null,
       log_to = null,
       usage = null,
       updated_at = greatest(%(now)s, selected.created_at)
  from selected, present
 where jobs.seq = selected.seq
returning selected.place, jobs.rank, jobs.token, jobs.runs, jobs.log,
          jobs.seq, jobs.id, jobs.runs as run, jobs.command, jobs.argv, jobs.queue, jobs.attempts, jobs.crashes, jobs.max_retries,
          jobs.first_is_free, jobs.backoff_base, jobs.timeout_ms, jobs.cwd, jobs.env, jobs.key, jobs.depends_on, jobs.hooks,
          jobs.limits, jobs.secrets
