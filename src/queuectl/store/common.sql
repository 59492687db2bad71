-- Statements that both dialects share. Parameters are written `:name` and tables `queuectl.jobs`: the loader of SQLite drops
-- the schema, the loader of PostgreSQL rewrites the parameters (statements.py).

-- ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────

-- name: last_id
-- The job that a user enqueued last: webhook deliveries do not count.
select id
  from queuectl.jobs
 where queue <> 'queuectl.webhooks'
 order by seq desc
 limit 1

-- name: tags
-- The first tags. Each step enters the index behind the tag before, so the cost does not depend on the number of jobs.
with recursive known (tag) as (
    select min(tag) from queuectl.job_tags
    union all
    select (select min(tag) from queuectl.job_tags where tag > known.tag) from known where known.tag is not null
)
select tag
  from known
 where tag is not null
 limit :limit

-- name: forget_requests
-- Remove idempotency keys that have expired, some at a time.
delete from queuectl.requests
 where key in (
    select key
      from queuectl.requests
     where at <= :before
     order by at
     limit :limit
 )

-- ── settings ────────────────────────────────────────────────────────────────────────────────────────────

-- name: config
-- All stored settings.
select key, value
  from queuectl.config

-- name: set_config
-- Store one setting.
insert into queuectl.config (key, value)
values (:key, :value)
on conflict (key) do update set value = :value

-- name: unset_config
-- Remove one setting.
delete from queuectl.config
 where key = :key

-- name: ageing
-- The ageing rule, as stored.
select value
  from queuectl.config
 where key = 'ageing'

-- ── runs ────────────────────────────────────────────────────────────────────────────────────────────────

-- name: has_deliveries
-- Whether the webhook outbox has rows.
select exists (select 1 from queuectl.webhook_outbox)

-- name: history
-- The runs of a job except the one that is stored in the job's row.
select number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending, log_from, log_to, usage, last_output
  from queuectl.runs
 where job = :seq
 order by number

-- name: latest_run
-- The run that is stored in the job's row, if there is one: running, or ended and not archived.
select runs, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error,
       coalesce(ending, 'running'), log_from, log_to, usage, last_output
  from queuectl.jobs
 where seq = :seq
   and (state = 'processing' or ending is not null)

-- ── queues ──────────────────────────────────────────────────────────────────────────────────────────────

-- name: unset_rules
-- Remove the settings of a queue.
delete from queuectl.queues
 where name = :name

-- name: queue_defaults
-- The defaults that queues have for their jobs.
select name, priority, max_retries, timeout_ms, on_success, on_failure, on_dead, limits
  from queuectl.queues
 where priority is not null
    or max_retries is not null
    or timeout_ms is not null
    or on_success is not null
    or on_failure is not null
    or on_dead is not null
    or limits is not null

-- name: place
-- The position of a job in its queue, and whether a cancel is recorded for its run.
select queue, rank, seq, cancel_requested
  from queuectl.jobs
 where id = :id

-- name: per_key
-- The queues that limit their concurrency keys.
select name, per_key
  from queuectl.queues
 where per_key is not null

-- name: add_start
-- Record a start in a queue with a rate limit.
insert into queuectl.starts (queue, number, job, run, at)
values (:queue, :number, :job, :run, :now)

-- name: correct_starts
-- The clock was set back. Starts in the future count as of now: a queue must not wait until the clock gets there again.
update queuectl.starts
   set at = :now
 where queue = :queue
   and at > :now

-- name: recent_starts
-- The number of starts in the current window, for each queue with a rate limit.
select name, (select count(*) from queuectl.starts where queue = name and at > :now - rate_ms)
  from queuectl.queues
 where rate_starts is not null

-- name: forget_starts
-- Remove the starts of a queue that no longer has a rate limit.
delete from queuectl.starts
 where queue = :queue

-- name: trim_starts
-- Remove the starts that the rate limit of a queue no longer depends on.
delete from queuectl.starts
 where queue = :queue
   and number <= :number

-- ── workers ─────────────────────────────────────────────────────────────────────────────────────────────

-- name: request_stop
-- Ask a worker to stop. A later "finish" does not override "now", and "restart" overrides nothing.
update queuectl.workers
   set stop = case when stop = 'now' or (stop is not null and :mode = 'restart') then stop else :mode end
 where id = :id

-- name: stop_order
-- The stop request of a worker, if any. No row: it was declared lost.
select stop
  from queuectl.workers
 where id = :id
   and state <> 'lost'

-- ── schedules ───────────────────────────────────────────────────────────────────────────────────────────

-- name: add_schedule
-- Add a schedule; no row if the name is taken.
insert into queuectl.schedules (
    name, expression, tz, anchor_at, fields, overlap, catch_up, jitter_ms, until_at, paused, created_at, updated_at, next_run_at,
    start_at, check_at, last_at, waiting
)
values (
    :name, :expression, :tz, :anchor_ms, :fields, :overlap, :catch_up, :jitter_ms, :until_ms,
    :is_paused, :created_ms, :updated_ms, :tick_ms, :start_ms, :look_ms, :last_ms, :waiting
)
on conflict do nothing

-- name: change_schedule
-- Update all columns of a schedule except its name.
update queuectl.schedules
   set expression = :expression,
       tz = :tz,
       anchor_at = :anchor_ms,
       fields = :fields,
       overlap = :overlap,
       catch_up = :catch_up,
       jitter_ms = :jitter_ms,
       until_at = :until_ms,
       paused = :is_paused,
       created_at = :created_ms,
       updated_at = :updated_ms,
       next_run_at = :tick_ms,
       start_at = :start_ms,
       check_at = :look_ms,
       last_at = :last_ms,
       waiting = :waiting
 where name = :name

-- name: remove_schedule
-- Remove a schedule, with its past runs.
delete from queuectl.schedules
 where name = :name

-- name: schedule
-- One schedule.
select name, expression, tz, anchor_at, fields, overlap, catch_up, jitter_ms, until_at, paused, created_at, updated_at, next_run_at,
       start_at, check_at, last_at, waiting
  from queuectl.schedules
 where name = :name

-- name: schedules
-- All schedules, by name.
select name, expression, tz, anchor_at, fields, overlap, catch_up, jitter_ms, until_at, paused, created_at, updated_at, next_run_at,
       start_at, check_at, last_at, waiting
  from queuectl.schedules
 order by name

-- name: mark_scheduled
-- Assign a new job to its schedule; it may have to wait for earlier ones.
update queuectl.jobs
   set cron = :name,
       held = :held,
       ready = ready and not :held
 where id = :id

-- name: schedule_checks
-- The schedules that have to be evaluated next, the earliest first.
select name, check_at
  from queuectl.schedules
 where check_at is not null
 order by check_at, name
 limit :limit

-- name: add_schedule_run
-- The decision about a run of a schedule. If there is one already, nothing is added, and its job must not be either.
insert into queuectl.schedule_runs (schedule, at, by_hand, decided_at, job, reason, times)
values (:schedule, :at_ms, :is_by_hand, :now, :job, :reason, :times)
on conflict do nothing

-- name: schedule_runs
-- The past runs of a schedule, the latest first; `fired`: only those with a job. With the current state of the job, unless it
-- was removed.
select past.at, past.decided_at, past.job, past.reason, past.times, past.by_hand, jobs.state, jobs.exit_code, jobs.error
  from queuectl.schedule_runs as past
  left join queuectl.jobs on jobs.id = past.job
 where past.schedule = :schedule
   and (past.job is not null or not :fired)
 order by past.at desc, past.by_hand desc
 limit :limit

-- name: trim_schedule_runs
-- Keep the latest runs of a schedule.
delete from queuectl.schedule_runs
 where schedule = :schedule
   and at < (
    select at
      from queuectl.schedule_runs
     where schedule = :schedule
     order by at desc
     limit 1
    offset :keep
   )

-- ── batches ─────────────────────────────────────────────────────────────────────────────────────────────

-- name: batch
-- One batch.
select name, added, created_at, completed_at, on_complete, on_complete_job
  from queuectl.batches
 where name = :name

-- name: batches
-- All batches, the newest first.
select name, added, created_at, completed_at, on_complete, on_complete_job
  from queuectl.batches
 order by created_at desc, name

-- name: batch_page
-- Some of the batches with this text in their name, the newest first, after a position. Compared twice, so that the index can
-- be entered at the position.
select name, added, created_at, completed_at, on_complete, on_complete_job
  from queuectl.batches
 where created_at <= :created_at
   and (created_at < :created_at or name < :name)
   and lower(name) like :pattern escape '!'
 order by created_at desc, name desc
 limit :limit

-- name: batch_ended_at
-- When the latest job of a batch ended. Reads its jobs.
select max(finished_at)
  from queuectl.jobs
 where batch = :name

-- name: set_on_complete
-- Set the completion job of a batch. Matches nothing if it has another one.
update queuectl.batches
   set on_complete = :job
 where name = :name
   and completed_at is null
   and coalesce(on_complete, :job) = :job

-- name: complete_batch
-- A batch has ended and its completion job is enqueued.
update queuectl.batches
   set completed_at = :now,
       on_complete_job = :job
 where name = :name
   and completed_at is null

-- ── alerts ──────────────────────────────────────────────────────────────────────────────────────────────

-- name: add_alert
-- Add an alert; no row if the name is taken.
insert into queuectl.alerts (
    name, kind, threshold, within_ms, queue, for_ms, repeat_ms, url, command, cwd, created_at, firing, changed_at,
    since_at, told_at, seen_at, checked_at, value, untold, tried_at, turn, paused
)
values (
    :name, :kind, :threshold, :within_ms, :queue, :for_ms, :repeat_ms, :url, :command,
    :cwd, :created_ms, :is_firing, :changed_ms, :since_ms, :told_ms, :seen_ms, :checked_ms,
    :value, :untold, :tried_ms, :turn, :is_paused
)
on conflict do nothing

-- name: update_alert
-- Write an alert, unless it was written since it was read.
update queuectl.alerts
   set kind = :kind,
       threshold = :threshold,
       within_ms = :within_ms,
       queue = :queue,
       for_ms = :for_ms,
       repeat_ms = :repeat_ms,
       url = :url,
       command = :command,
       cwd = :cwd,
       paused = :is_paused,
       firing = :is_firing,
       changed_at = :changed_ms,
       since_at = :since_ms,
       told_at = :told_ms,
       seen_at = :seen_ms,
       checked_at = :checked_ms,
       value = :value,
       untold = :untold,
       tried_at = :tried_ms,
       turn = turn + 1
 where name = :name
   and turn = :turn
   and created_at = :created_ms

-- name: remove_alert
-- Remove an alert. Its notification jobs stay.
delete from queuectl.alerts
 where name = :name

-- name: alert
-- One alert.
select name, kind, threshold, within_ms, queue, for_ms, repeat_ms, url, command, cwd, created_at, firing, changed_at,
       since_at, told_at, seen_at, checked_at, value, untold, tried_at, turn, paused
  from queuectl.alerts
 where name = :name

-- name: alerts
-- All alerts, by name.
select name, kind, threshold, within_ms, queue, for_ms, repeat_ms, url, command, cwd, created_at, firing, changed_at,
       since_at, told_at, seen_at, checked_at, value, untold, tried_at, turn, paused
  from queuectl.alerts
 order by name

-- ── audit ───────────────────────────────────────────────────────────────────────────────────────────────

-- name: add_audit
insert into queuectl.audit (at, actor, action, targets, before, after)
values (:at, :actor, :action, :targets, :before, :after)

-- name: forget_audit
-- Remove the oldest entries from before a time. Reads `rows` of them, so it never scans the table.
delete from queuectl.audit
 where seq in (select seq from (select seq, at from queuectl.audit order by seq limit :rows) as oldest where at < :before)

-- ── stats ───────────────────────────────────────────────────────────────────────────────────────────────

-- name: counters
-- The totals of each queue at the last sample.
select queue, enqueued, started, completed, failed, dead, retried, rescued
  from queuectl.counters

-- name: sampling
-- The time of the last sample, and the end of the runs whose times are in `buckets`.
select at, until, removals
  from queuectl.sampling

-- name: buckets
-- Run and waiting times of all jobs ever completed, up to `sampling.until`.
select queue, what, bucket, jobs, ms
  from queuectl.buckets

-- name: points_of
-- The samples of one minute or hour.
select at, queue, covers_ms, enqueued, started, completed, failed, dead, retried, rescued, waiting, running, oldest_ms, run, wait
  from queuectl.points
 where span = :span
   and at = :at

-- name: thin_points
-- Remove samples past their retention.
delete from queuectl.points
 where span = :span
   and at < :before

-- name: first_created
-- When the oldest existing job was enqueued.
select created_at
  from queuectl.jobs
 order by seq
 limit 1

-- ── transfer ────────────────────────────────────────────────────────────────────────────────────────────

-- name: is_untouched
-- Whether the store never had a job, a setting, a schedule or an alert. Every job leaves a row in `moves`.
select not exists (select 1 from queuectl.jobs)
   and not exists (select 1 from queuectl.runs)
   and not exists (select 1 from queuectl.config)
   and not exists (select 1 from queuectl.queues)
   and not exists (select 1 from queuectl.moves)
   and not exists (select 1 from queuectl.batches)
   and not exists (select 1 from queuectl.schedules)
   and not exists (select 1 from queuectl.alerts)

-- name: is_undecided
-- Whether there are dependencies to resolve.
select exists (select 1 from queuectl.undecided)
