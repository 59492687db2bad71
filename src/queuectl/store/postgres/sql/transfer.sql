-- name: copied
-- The number of rows of each kind that a copy contains. The runs include those that are stored in the rows of jobs.
select 'jobs', (select count(*) from queuectl.jobs)
union all
select 'runs',
       (select count(*) from queuectl.runs)
       + (select count(*) from queuectl.jobs where ending is not null or state = 'processing')
union all
select 'pieces of output', (select count(*) from queuectl.output)
union all
select 'tags', (select count(*) from queuectl.job_tags)
union all
select 'batches', (select count(*) from queuectl.batches)
union all
select 'dependencies', (select count(*) from queuectl.edges)
union all
select 'settings', (select count(*) from queuectl.config)
union all
select 'schedules', (select count(*) from queuectl.schedules)
union all
select 'alerts', (select count(*) from queuectl.alerts)
union all
select 'rules of queues', (select count(*) from queuectl.queues)
union all
select 'jobs ever enqueued', (select coalesce(sum(jobs), 0)::bigint from queuectl.moves where was = '')
union all
select 'keyed requests', (select count(*) from queuectl.requests)
union all
select 'calls to make', (select count(*) from queuectl.webhook_outbox)
union all
select 'points for charts', (select count(*) from queuectl.points)

-- name: continue_from
-- The next job gets the number after this one. Not undone by a rollback: so it comes last. (SQLite: sqlite_sequence.)
select setval('queuectl.jobs_seq_seq', %(last_seq)s, true)

-- name: continue_audit
-- Number the next audit entry after the last one. (SQLite does so by itself.)
select setval(pg_get_serial_sequence('queuectl.audit', 'seq'), max(seq), true) from queuectl.audit having max(seq) is not null

-- name: identity
-- Identifies the store and the database: a cloned store has the same ID, and is another store. (SQLite: the file itself,
-- whatever its path.)
select meta.id || '/' || pg_database.oid::text
  from queuectl.meta, pg_database
 where datname = current_database()

-- name: import_job
-- Insert jobs with their history, as a stream of rows. Columns in the order of store/transfer.py, and the token of the latest
-- run, which no worker has. (SQLite has no such column.)
copy queuectl.jobs (
    seq, id, command, argv, state, queue, ready, priority, rank, eligible_at, effective_priority, run_at, held, max_retries,
    first_is_free, backoff_base, timeout_ms, cwd, env, tags, unique_key, cron, attempts, runs, crashes, worker, host, pid, started_at,
    finished_at, duration_ms, wait_ms, exit_code, signal, error, ending, created_at, updated_at, batch, key, depends_on, places,
    hooks, limits, usage, secrets, last_output, fingerprint, last_token
) from stdin

-- name: import_run
-- Insert earlier runs of imported jobs, as a stream of rows; the token as in `import_job`.
copy queuectl.runs (
    job, number, worker, host, pid, started_at, finished_at, duration_ms, exit_code, signal, error, ending,
    last_output, usage, token
) from stdin

-- name: rerank
-- The SQL version of `rank` in jobs/priority.py, for all jobs that wait or may wait again. Runs once, when `ageing` changes.
update queuectl.jobs
   set rank = case %(ageing)s
                  when 'off' then -priority
                  when 'enqueues' then seq + missed - priority
                  else eligible_at - priority * %(step_ms)s::bigint
              end,
       ready_since = pg_current_xact_id()
 where state in ('blocked', 'pending', 'failed', 'processing')
