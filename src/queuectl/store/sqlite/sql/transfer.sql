-- name: copied
-- The number of rows of each kind that a copy contains. The runs include those that are stored in the rows of jobs.
select 'jobs', (select count(*) from jobs)
union all
select 'runs',
       (select count(*) from runs) + (select count(*) from jobs where ending is not null or state = 'processing')
union all
select 'pieces of output', (select count(*) from output)
union all
select 'tags', (select count(*) from job_tags)
union all
select 'batches', (select count(*) from batches)
union all
select 'dependencies', (select count(*) from edges)
union all
select 'settings', (select count(*) from config)
union all
select 'schedules', (select count(*) from schedules)
union all
select 'alerts', (select count(*) from alerts)
union all
select 'rules of queues', (select count(*) from queues)
union all
select 'jobs ever enqueued', (select coalesce(sum(jobs), 0) from moves where was = '')
union all
select 'keyed requests', (select count(*) from requests)
union all
select 'calls to make', (select count(*) from webhook_outbox)
union all
select 'points for charts', (select count(*) from points)

-- name: import_job
-- Insert a job with its history. Columns in the order of store/transfer.py.
insert into jobs (
    seq, id, command, argv, state, queue, ready, priority, rank, eligible_at, effective_priority, run_at, held, max_retries,
    first_is_free, backoff_base, timeout_ms, cwd, env, tags, unique_key, cron, attempts, runs, crashes, worker, host, pid, started_at,
    finished_at, duration_ms, wait_ms, exit_code, signal, error, ending, created_at, updated_at, batch, key, depends_on, places,
    hooks, limits, usage, secrets, last_output, fingerprint
)
values (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?
)

-- name: import_run
-- Insert an earlier run of an imported job.
insert into runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending,
    last_output, usage
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: rerank
-- The SQL version of `rank` in jobs/priority.py, for all jobs that wait or may wait again. Runs once, when `ageing` changes. In
-- two parts, each with an index of its own.
update jobs
   set rank = case :ageing
                  when 'off' then -priority
                  when 'enqueues' then seq + missed - priority
                  else eligible_at - priority * :step_ms
              end
 where (state in ('blocked', 'pending', 'failed') and state <> 'processing')
    or seq in (select seq from jobs indexed by jobs_running where state = 'processing')
