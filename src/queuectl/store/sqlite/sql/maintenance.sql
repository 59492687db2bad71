-- name: ended
-- Dead or cancelled jobs that ended by a time, the first to end first, with the cost of removing each in rows and half pages.
-- With a host: without those whose log is on a host that has another worker.
select id, log, host,
       max(1, runs)
       + (select count(*) from output where output.job = jobs.seq)
       + (select count(*) from job_tags where job_tags.job = jobs.seq)
       + (length(coalesce(command, argv)) + length(coalesce(env, ''))) / 2048
  from jobs indexed by jobs_ended
 where state = :state
   and (state = 'dead' or state = 'cancelled')
   and finished_at <= :before
   and (:host is null or host is null or host = :host
        or not exists (select 1 from workers where workers.host = jobs.host))
 order by finished_at
 limit :limit

-- name: ended_of
-- As `ended`, for jobs with these IDs, in any final state.
select id, log, host,
       max(1, runs)
       + (select count(*) from output where output.job = jobs.seq)
       + (select count(*) from job_tags where job_tags.job = jobs.seq)
       + (length(coalesce(command, argv)) + length(coalesce(env, ''))) / 2048
  from jobs
 where id in (select value from json_each(:ids))
   and +state = :state
   and finished_at <= :before
   and (:host is null or host is null or host = :host
        or not exists (select 1 from workers where workers.host = jobs.host))
 order by +finished_at

-- name: ended_completed
-- As `ended`, for completed jobs, which have an index of their own.
select id, log, host,
       max(1, runs)
       + (select count(*) from output where output.job = jobs.seq)
       + (select count(*) from job_tags where job_tags.job = jobs.seq)
       + (length(coalesce(command, argv)) + length(coalesce(env, ''))) / 2048
  from jobs indexed by jobs_completed
 where state = 'completed'
   and finished_at <= :before
   and (:host is null or host is null or host = :host
        or not exists (select 1 from workers where workers.host = jobs.host))
 order by finished_at
 limit :limit

-- name: prune
-- Remove a job that ended by a time, with its history, output, tags and dependencies. A job with unresolved children stays.
delete from jobs
 where id = :id
   and state in ('completed', 'dead', 'cancelled')
   and finished_at <= :before
   and not exists (select 1 from edges where parent = jobs.seq and state = 'waiting')
returning queue, state, log, finished_at, duration_ms, wait_ms

-- name: trim_runs
-- Remove the oldest runs of a job that ended by a time.
delete from runs
 where job = (
    select seq
      from jobs
     where id = :id
       and state in ('completed', 'dead', 'cancelled')
       and finished_at <= :before
 )
   and number in (
    select number
      from runs
     where job = (select seq from jobs where id = :id)
     order by number
     limit :rows
 )

-- name: trim_output
-- Remove the oldest output of a job that ended by a time.
delete from output
 where rowid in (
    select output.rowid
      from output
     where job = (
        select seq
          from jobs
         where id = :id
           and state in ('completed', 'dead', 'cancelled')
           and finished_at <= :before
     )
     order by run, at
     limit :rows
 )
