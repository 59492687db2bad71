-- claim: give jobs to a worker. Eligible: pending or failed, due, not held (all that `ready` says), with room by its key (not `aside`), in the order of rank, then
-- first in, first out; of named queues the first is served first. Nobody gets a job while one whose time has come still
-- waits outside (`late`; those that another is just letting in are not waited for), and a worker that is not known gets none.
-- Rows that another has locked are passed over: it is just taking them. Each line locks row by row in index order and stops at
-- the limit, so nothing is locked that is not claimed; that holds for the lines of named queues too, which are asked one
-- after the other (a sort above them would have to lock the heads of all). SQLite has one writer, and needs none of this.
-- Started now until the worker says when exactly. An earlier run that stands in the row becomes a row of `runs`.
--
-- Floors: while somebody holds a transaction open, nothing that was claimed can be cleared away, and each claim would step over
-- all of it to find the head of the line. So the caller says up to where it has emptied a line (rank and seq, null: no idea)
-- and what it had seen by then (`seen`). Only what came to the line since can stand before that: if any does, or if too many came
-- to look at (`fresh`), the line is read from its very beginning.
--
-- Heads: where a line begins now, whoever has locked what: before it there is nothing, for sure. Told of the lines for which the caller
-- wants to know it (`looks`), in each row, or in one without a job if nothing is claimed: a worker that waits has to know it, too.
--
-- Chosen: where queues are paused or limited, or served by weight, the caller has chosen the jobs (their seq, in order), within
-- a transaction that holds the limits, see heads.sql and hold_limits.sql. It names no lines then. A claim by lines finds nothing
-- while any queue is paused or limited.
--
-- Calls: jobs that tell of the ends of others take no slot, and have a number of their own. They are not among those of all queues.
--
-- Conditions are written as ranges in the order of an index, also where they mean one value: no other index gives that order.
with late as (
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
           and not exists (select 1 from late) as is_open,
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
           ) as is_free
),
fresh as materialized (
    (
        select queue, rank, seq
          from queuectl.jobs
         where ready
           and not aside
           and ready_since >= pg_snapshot_xmax(%(seen)s::pg_snapshot)
         order by ready_since
         limit 2000
    )
    union all
    (
        select found.*
          from pg_snapshot_xip(%(seen)s::pg_snapshot) as open (xid)
         cross join lateral (
            select queue, rank, seq
              from queuectl.jobs
             where ready
               and not aside
               and ready_since >= open.xid
               and ready_since <= open.xid
             order by ready_since
             limit 2000
         ) as found
         limit 2000
    )
),
floors as materialized (
    select turn, queue, is_asked,
           case when is_sure then rank else -9223372036854775808 end as rank,
           case when is_sure then seq else 0 end as seq
      from (
        select floor.turn, floor.queue, floor.rank, floor.seq, floor.is_asked,
               floor.rank is not null
               and (select count(*) from fresh) < 2000
               and not exists (
                   select 1
                     from fresh
                    where (fresh.queue = floor.queue or (floor.queue is null and fresh.queue <> 'queuectl.webhooks'))
                      and (fresh.rank, fresh.seq) <= (floor.rank, floor.seq)
               ) as is_sure
          from unnest(%(queues)s::text[], %(floor_ranks)s::bigint[], %(floor_seqs)s::bigint[], %(looks)s::boolean[])
               with ordinality as floor (queue, rank, seq, is_asked, turn)
      ) as told
),
heads as (
    select json_agg(json_build_array(floors.turn, head.rank, head.seq))::text as told
      from floors
      left join lateral (
        (
            select rank, seq
              from queuectl.jobs
             where floors.queue is null
               and queue <> 'queuectl.webhooks'
               and ready
               and not aside
               and (rank, seq) > (floors.rank, floors.seq)
             order by rank, seq
             limit 1
        )
        union all
        (
            select rank, seq
              from queuectl.jobs
             where ready
               and not aside
               and (jobs.queue, jobs.rank, jobs.seq) > (floors.queue, floors.rank, floors.seq)
               and jobs.queue <= floors.queue
             order by jobs.queue, jobs.rank, jobs.seq
             limit 1
        )
      ) as head on true
     where floors.is_asked
),
any_queue as (
    select 1::bigint as turn, jobs.*
      from queuectl.jobs
     where ready
       and not aside
       and queue <> 'queuectl.webhooks'
       and (rank, seq) > ((select rank from floors where queue is null), (select seq from floors where queue is null))
       and (select is_open and is_free from gate)
     order by rank, seq
     limit %(limit)s
       for update skip locked
),
named_queues as (
    select floors.turn, line.*
      from floors
     cross join lateral (
        select *
          from queuectl.jobs
         where ready
           and not aside
           and (jobs.queue, jobs.rank, jobs.seq) > (floors.queue, floors.rank, floors.seq)
           and jobs.queue <= floors.queue
           and (select is_open and is_free from gate)
         order by jobs.queue, jobs.rank, jobs.seq
         limit %(limit)s
           for update skip locked
     ) as line
     limit %(limit)s
),
calls as (
    select 9223372036854775807 as turn, jobs.*
      from queuectl.jobs
     where ready
       and not aside
       and (jobs.queue, jobs.rank, jobs.seq) > ('queuectl.webhooks', -9223372036854775808, 0)
       and jobs.queue <= 'queuectl.webhooks'
       and (select is_open and is_free from gate)
     order by jobs.queue, jobs.rank, jobs.seq
     limit %(calls)s
       for update skip locked
),
chosen as (
    select told.turn, jobs.*
      from unnest(%(chosen)s::bigint[]) with ordinality as told (seq, turn)
      join queuectl.jobs
        on jobs.seq = told.seq
     where jobs.ready
       and not jobs.aside
       and (select is_open from gate)
       for update of jobs skip locked
),
line as (
    select *, row_number() over (order by turn, rank, seq) as place
      from (
        select * from any_queue
        union all
        select * from named_queues
        union all
        select * from calls
        union all
        select * from chosen
      ) as found
),
archived as (
    insert into queuectl.runs (
        job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from,
        log_to, token, usage
    )
    select seq, runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from,
           log_to, last_token, usage
      from line
     where ending is not null
),
counted as (
    insert into queuectl.moves (queue, was, now, ending, jobs)
    select queue, state, 'processing', '', count(*)
      from line
     group by queue, state
),
present as (
    select ageing, step_ms,
           (select case when is_called then last_value else 0 end from queuectl.jobs_seq_seq) as last_seq
      from queuectl.meta
),
claimed as (
    update queuectl.jobs
       set state = 'processing',
           ready = false,
           token = (%(tokens)s::text[])[line.place],
           last_token = (%(tokens)s::text[])[line.place],
           worker = %(worker)s,
           host = %(host)s,
           pid = null,
           claimed_seq = present.last_seq,
           cancel_requested = false,
           -- the SQL twin of effective_priority in job/rank.py
           effective_priority = line.priority + case present.ageing
               when 'off' then 0
               when 'enqueues' then greatest(0, present.last_seq - line.seq - line.missed)
               else greatest(0, %(now)s - line.eligible_at) / present.step_ms
           end,
           runs = line.runs + 1,
           started_at = greatest(%(now)s, line.created_at),
           wait_ms = greatest(0, %(now)s - greatest(line.created_at, line.run_at)),
           finished_at = null,
           duration_ms = null,
           exit_code = null,
           signal = null,
           error = null,
           ending = null,
           log = %(logs)s || '/' || line.id || '.log',
           log_from = null,
           log_to = null,
           usage = null,
           updated_at = greatest(%(now)s, line.created_at)
      from line, present
     where jobs.seq = line.seq
    returning line.place, jobs.rank, jobs.token, jobs.runs, jobs.log,
              jobs.seq, jobs.id, jobs.runs as run, jobs.command, jobs.argv, jobs.queue, jobs.attempts, jobs.crashes, jobs.max_retries,
              jobs.first_is_free, jobs.backoff_base, jobs.timeout_ms, jobs.cwd, jobs.env, jobs.key, jobs.depends_on, jobs.hooks,
              jobs.limits, jobs.secrets
)
select claimed.*, heads.told
  from heads
  left join claimed
    on true
