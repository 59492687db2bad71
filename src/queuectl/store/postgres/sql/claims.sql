-- name: claim
-- Give jobs to a worker. {candidates} selects and locks the rows; it is one of
--   candidates_any_queue      jobs of all queues, in one order: the common case
--   candidates_named_queues   the queues that the worker names, the first one first
--   candidates_webhooks       webhook deliveries, which do not use slots
--   candidates_chosen         jobs selected before by the limits of their queues
--   candidates_from_cursor    the first two, behind what was claimed before (see claim_cursor.py)
-- Eligible: `ready` (pending or failed, due, not held) and not `key_blocked` (its concurrency key has a free place), by rank, then first in,
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
        log_to, token, usage, last_output
    )
    select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from,
           log_to, last_token, usage, last_output
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
       -- the SQL version of effective_priority in jobs/priority.py
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
       log_from = null,
       log_to = null,
       usage = null,
       last_output = null,
       fingerprint = null,
       updated_at = greatest(%(now)s, selected.created_at)
  from selected, present
 where jobs.seq = selected.seq
returning selected.place, jobs.rank, jobs.token, jobs.runs, %(logs)s::text || '/' || jobs.id || '.log',
          jobs.seq, jobs.id, jobs.runs as run, jobs.command, jobs.argv, jobs.queue, jobs.attempts, jobs.crashes, jobs.max_retries,
          jobs.first_is_free, jobs.backoff_base, jobs.timeout_ms, jobs.cwd, jobs.env, jobs.key, jobs.depends_on, jobs.hooks,
          jobs.limits, jobs.secrets

-- name: candidates_any_queue
-- The first jobs of all queues, for `claim`. (SQLite: `ready`, queue by queue.)
candidates as (
    select 1::bigint as turn, jobs.*
      from queuectl.jobs
     where ready
       and not key_blocked
       and queue <> 'queuectl.webhooks'
       and (select is_open and is_unlimited from gate)
     order by rank, seq
     limit %(limit)s
       for update skip locked
)

-- name: candidates_named_queues
-- The first jobs of the queues that the worker names, for `claim`. The queues are read one after the other until
-- there are enough. The queue is a range that means one value: only jobs_ready gives that order, and the planner cannot prefer an
-- index in which the jobs of other queues come first. (SQLite asks queue by queue.)
candidates as (
    select served.turn, first.*
      from unnest(%(queues)s::text[]) with ordinality as served (queue, turn)
     cross join lateral (
        select *
          from queuectl.jobs
         where ready
           and not key_blocked
           and (jobs.queue, jobs.rank, jobs.seq) > (served.queue, -9223372036854775808, 0)
           and jobs.queue <= served.queue
           and (select is_open and is_unlimited from gate)
         order by jobs.queue, jobs.rank, jobs.seq
         limit %(limit)s
           for update skip locked
     ) as first
     limit %(limit)s
)

-- name: candidates_from_cursor
-- As candidates_any_queue and candidates_named_queues (a null among the queues means all), but behind the cursor of
-- each queue, for `claim`. While another session holds a transaction open, dead rows cannot be removed, and without a cursor each claim
-- steps over all of them. (SQLite has no dead rows.)
{valid_cursors},
any_queue as (
    select 1::bigint as turn, jobs.*
      from queuectl.jobs
     where ready
       and not key_blocked
       and queue <> 'queuectl.webhooks'
       and (rank, seq) > ((select rank from cursors where queue is null), (select seq from cursors where queue is null))
       and (select is_open and is_unlimited from gate)
     order by rank, seq
     limit %(limit)s
       for update skip locked
),
named_queues as (
    select cursors.turn, first.*
      from cursors
     cross join lateral (
        select *
          from queuectl.jobs
         where ready
           and not key_blocked
           and (jobs.queue, jobs.rank, jobs.seq) > (cursors.queue, cursors.rank, cursors.seq)
           and jobs.queue <= cursors.queue
           and (select is_open and is_unlimited from gate)
         order by jobs.queue, jobs.rank, jobs.seq
         limit %(limit)s
           for update skip locked
     ) as first
     limit %(limit)s
),
candidates as (
    select * from any_queue
    union all
    select * from named_queues
)

-- name: candidates_chosen
-- The jobs (by seq, in order) that were chosen within the limits of their queues, for `claim`. The transaction
-- holds those limits, see `hold_limits`. `is true` keeps the planner from an index of all that is ready. (SQLite claims what it has just read.)
candidates as (
    select chosen.turn, jobs.*
      from unnest(%(chosen)s::bigint[]) with ordinality as chosen (seq, turn)
      join queuectl.jobs
        on jobs.seq = chosen.seq
     where (jobs.ready and not jobs.key_blocked) is true
       and (select is_open from gate)
       for update of jobs skip locked
)

-- name: candidates_webhooks
-- The first webhook deliveries, for `claim`. (SQLite asks queue by queue.)
candidates as (
    select 1::bigint as turn, jobs.*
      from queuectl.jobs
     where ready
       and not key_blocked
       and (queue, rank, seq) > ('queuectl.webhooks', -9223372036854775808, 0)
       and queue <= 'queuectl.webhooks'
       and (select is_open and is_unlimited from gate)
     order by queue, rank, seq
     limit %(limit)s
       for update skip locked
)

-- name: valid_cursors
-- Where a claim can begin to read each queue (null: all queues together), for `candidates_from_cursor` and `queue_heads`.
-- Up to its cursor (rank, seq; null: unknown) the caller found nothing left when it had seen the transactions `seen`. Only jobs that became
-- ready since can stand before it (`fresh`). If one does, or if there are too many to check, the queue is read from its beginning. (SQLite has no dead rows.)
fresh as materialized (
    (
        select queue, rank, seq
          from queuectl.jobs
         where ready
           and not key_blocked
           and ready_since >= pg_snapshot_xmax(%(seen)s::pg_snapshot)
         order by ready_since
         limit 2000
    )
    union all
    (
        select became_ready.*
          from pg_snapshot_xip(%(seen)s::pg_snapshot) as running (xid)
         cross join lateral (
            select queue, rank, seq
              from queuectl.jobs
             where ready
               and not key_blocked
               and ready_since >= running.xid
               and ready_since <= running.xid
             order by ready_since
             limit 2000
         ) as became_ready
         limit 2000
    )
),
cursors as materialized (
    select turn, queue,
           case when is_valid then rank else -9223372036854775808 end as rank,
           case when is_valid then seq else 0 end as seq
      from (
        select cursor.turn, cursor.queue, cursor.rank, cursor.seq,
               cursor.rank is not null
               and (select count(*) from fresh) < 2000
               and not exists (
                   select 1
                     from fresh
                    where (fresh.queue = cursor.queue or (cursor.queue is null and fresh.queue <> 'queuectl.webhooks'))
                      and (fresh.rank, fresh.seq) <= (cursor.rank, cursor.seq)
               ) as is_valid
          from unnest(%(queues)s::text[], %(cursor_ranks)s::bigint[], %(cursor_seqs)s::bigint[])
               with ordinality as cursor (queue, rank, seq, turn)
      ) as checked
)

-- name: ready_queues
-- The queues with claimable jobs. Steps from name to name through jobs_ready (a loose index scan), so it costs one probe per
-- queue, not one row per job.
with recursive step (queue) as (
    (
        select queue
          from queuectl.jobs
         where ready
           and not key_blocked
         order by queue, rank, seq
         limit 1
    )
    union all
    select (
        select jobs.queue
          from queuectl.jobs
         where ready
           and not key_blocked
           and jobs.queue > step.queue
         order by jobs.queue, jobs.rank, jobs.seq
         limit 1
    )
      from step
     where step.queue is not null
)
select queue
  from step
 where queue is not null

-- name: queue_heads
-- The first ready job of each queue (null: of all), locked or not: before it there is nothing. The cursor of later claims. (SQLite has no dead rows.)
with {valid_cursors}
select cursors.turn, head.rank, head.seq
  from cursors
  left join lateral (
    (
        select rank, seq
          from queuectl.jobs
         where cursors.queue is null
           and queue <> 'queuectl.webhooks'
           and ready
           and not key_blocked
           and (rank, seq) > (cursors.rank, cursors.seq)
         order by rank, seq
         limit 1
    )
    union all
    (
        select rank, seq
          from queuectl.jobs
         where ready
           and not key_blocked
           and (jobs.queue, jobs.rank, jobs.seq) > (cursors.queue, cursors.rank, cursors.seq)
           and jobs.queue <= cursors.queue
         order by jobs.queue, jobs.rank, jobs.seq
         limit 1
    )
  ) as head on true

-- name: heads
-- The first jobs of some queues, in order, up to a number for each. Locks nothing: the claim locks the jobs, and finds out
-- whether another worker was faster. Without jobs that limit their own key: the caller reads queues with such jobs by
-- `ready_behind`, and jobs that were added since wait for the next claim. (SQLite: `ready`, queue by queue.)
select line.rank, line.seq, line.queue
  from unnest(%(queues)s::text[], %(places)s::bigint[]) as input (queue, places)
 cross join lateral (
    select jobs.rank, jobs.seq, jobs.queue
      from queuectl.jobs
     where jobs.ready
       and not jobs.key_blocked
       and jobs.places is null
       and (jobs.queue, jobs.rank, jobs.seq) > (input.queue, -9223372036854775808, 0)
       and jobs.queue <= input.queue
     order by jobs.queue, jobs.rank, jobs.seq
     limit input.places
 ) as line

-- name: ready_behind
-- The first jobs of a queue after a position, with their keys, for a queue that limits concurrency keys: earlier jobs may have
-- no free slot. Locks nothing, as `heads`.
select jobs.rank, jobs.seq, jobs.queue, jobs.key, jobs.places
  from queuectl.jobs
 where jobs.ready
   and not jobs.key_blocked
   and (jobs.queue, jobs.rank, jobs.seq) > (%(queue)s, %(rank)s::bigint, %(seq)s::bigint)
   and jobs.queue <= %(queue)s
 order by jobs.queue, jobs.rank, jobs.seq
 limit %(limit)s

-- name: promote
-- Make due jobs claimable. Bounded, so that a million due at once do not take seconds; the caller repeats it while the bound is
-- reached. Skips rows that another worker is promoting. Returns how many, and the server's clock in milliseconds, to measure
-- the claim that follows.
with due as (
    select seq
      from queuectl.jobs
     where not ready
       and not held
       and state in ('pending', 'failed')
       and run_at <= %(now)s
     order by run_at
     limit %(limit)s
       for update skip locked
),
promoted as (
    update queuectl.jobs
       set ready = true,
           ready_since = pg_current_xact_id()
      from due
     where jobs.seq = due.seq
    returning 1
)
select count(*), extract(epoch from clock_timestamp())::float8 * 1000
  from promoted

-- name: outlook
-- What a worker needs after an exchange: when the next job comes due, whether dependencies are unresolved, whether webhook
-- deliveries wait, and the server's clock in milliseconds (see `promote`). (SQLite reads it before it writes.)
select (
           select run_at
             from queuectl.jobs
            where not ready
              and not held
              and state in ('pending', 'failed')
            order by run_at
            limit 1
       ),
       exists (select 1 from queuectl.undecided),
       (
           select true
             from queuectl.jobs
            where ready
              and not key_blocked
              and (queue, rank, seq) > ('queuectl.webhooks', -9223372036854775808, 0)
              and queue <= 'queuectl.webhooks'
            order by queue, rank, seq
            limit 1
       ),
       extract(epoch from clock_timestamp())::float8 * 1000

-- name: waits
-- The frequency of each waiting time among the completed jobs of each queue, without webhook deliveries.
select queue, wait_ms, count(*)
  from queuectl.jobs
 where state = 'completed'
   and wait_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, wait_ms

-- name: is_drained
-- Whether, in those of these queues (null: all) that are not paused, all dependencies are resolved, nothing is due or runs, and
-- no retry waits (of a webhook delivery: none of the first few). Held jobs do not count. Each condition uses an index that
-- contains only rows that violate it; ready jobs are searched from queue to queue, since a paused queue may have a million.
-- (SQLite: `is_ready`, `is_due` and `is_retrying`, queue by queue.)
with recursive paused as (
    select name
      from queuectl.queues
     where paused
),
step (queue) as (
    (
        select queue
          from queuectl.jobs
         where ready
         order by queue, run_at
         limit 1
    )
    union all
    select (
        select jobs.queue
          from queuectl.jobs
         where ready
           and jobs.queue > step.queue
         order by jobs.queue, jobs.run_at
         limit 1
    )
      from step
     where step.queue is not null
)
select not exists (select 1 from queuectl.undecided)
   and not (
           exists (select 1 from queuectl.webhook_outbox)
           and (%(queues)s::text[] is null or 'queuectl.webhooks' = any(%(queues)s::text[]))
       )
   and not exists (
           select 1
             from step
            where queue is not null
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
              and queue not in (select name from paused)
       )
   and not exists (
           select 1
             from queuectl.jobs
            where state = 'processing'
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
              and queue not in (select name from paused)
       )
   and not exists (
           select 1
             from queuectl.jobs
            where state = 'failed'
              and not held
              and (queue <> 'queuectl.webhooks' or attempts < %(patience)s)
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
              and queue not in (select name from paused)
       )
   and not exists (
           select 1
             from queuectl.jobs
            where not ready
              and not held
              and state in ('pending', 'failed')
              and run_at <= %(now)s
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
              and queue not in (select name from paused)
       )

-- name: is_awaited
-- Whether a job waits for one of these, which are locked. (SQLite has one writer: no new child can be added in between.)
select exists (select 1 from queuectl.edges where parent = any(%(seqs)s) and state = 'waiting')

-- name: served
-- The queues that running workers serve, one row per worker; null: all. A stopping worker claims no more jobs. (SQLite:
-- `workers`.)
select distinct queues
  from queuectl.workers
 where state = 'running'

-- name: unclaim
-- Workers returned jobs that they had not started: the claims were not runs. A job's row shows the run before it again, which
-- was archived at the claim, or none. The number of the run is compared, too: a repeated request after a lost connection has no
-- effect.
with restored as (
    update queuectl.jobs
       set runs = jobs.runs - 1,
           last_token = earlier.token,
           worker = earlier.worker,
           host = earlier.host,
           pid = earlier.pid,
           started_at = earlier.started_at,
           finished_at = earlier.finished_at,
           duration_ms = earlier.duration_ms,
           exit_code = earlier.exit_code,
           signal = earlier.signal,
           error = earlier.error,
           ending = earlier.ending,
           log_from = earlier.log_from,
           log_to = earlier.log_to,
           usage = earlier.usage,
           last_output = earlier.last_output,
           wait_ms = case when jobs.runs > 1 then wait_ms end
      from unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(runs)s::integer[]) as input (seq, token, run)
      left join queuectl.runs as earlier
        on earlier.job = input.seq
       and earlier.number = input.run - 1
     where jobs.seq = input.seq
       and jobs.last_token = input.token
       and jobs.runs = input.run
       and jobs.token is null
       and jobs.ending is null
    returning jobs.seq, jobs.runs
)
delete from queuectl.runs
 using restored
 where runs.job = restored.seq
   and runs.number = restored.runs

-- name: unrun
-- The policy of the host refused these jobs: the claims were not runs, are not counted, and are not in the history. An earlier
-- run was archived at the claim; its start time stays in the row. The number of the run is compared, too: a repeated request
-- after a lost connection has no effect.
update queuectl.jobs
   set runs = runs - 1,
       started_at = (
           select coalesce(runs.started_at, jobs.started_at)
             from queuectl.runs
            where job = jobs.seq
              and number = jobs.runs - 1
       ),
       wait_ms = case when runs > 1 then wait_ms end,
       duration_ms = null
  from unnest(%(seqs)s::bigint[], %(tokens)s::text[], %(runs)s::integer[]) as input (seq, token, run)
 where jobs.seq = input.seq
   and last_token = input.token
   and runs = input.run
   and jobs.token is null
   and ending is null
