-- name: ended
-- Dead or cancelled jobs that ended by a time, the first to end first, with the cost of removing each in rows and half pages.
-- The state is a range that means one value: only jobs_ended gives that order. With a host: without those whose log is on a
-- host that has another worker.
select id, log, host,
       greatest(1, runs)
       + (select count(*) from queuectl.output where output.job = jobs.seq)
       + (select count(*) from queuectl.job_tags where job_tags.job = jobs.seq)
       + (octet_length(coalesce(command, argv)) + octet_length(coalesce(env, ''))) / 2048
  from queuectl.jobs
 where state in ('dead', 'cancelled')
   and finished_at is not null
   and (state, finished_at) > (%(state)s, -1)
   and (state, finished_at) <= (%(state)s, %(before)s)
   and (%(host)s::text is null or host is null or host = %(host)s
        or host <> all (array(select workers.host from queuectl.workers)))
 order by state, finished_at
 limit %(limit)s

-- name: ended_of
-- As `ended`, for jobs with these IDs, in any final state. The IDs are looked up first: otherwise the planner would scan all
-- ended jobs.
with named as materialized (
    select jobs.seq, jobs.id, jobs.state, jobs.finished_at, jobs.log, jobs.host, jobs.runs, jobs.command, jobs.argv, jobs.env
      from unnest(%(ids)s::text[]) as input (id)
      join queuectl.jobs
        on jobs.id = input.id
)
select id, log, host,
       greatest(1, runs)
       + (select count(*) from queuectl.output where output.job = named.seq)
       + (select count(*) from queuectl.job_tags where job_tags.job = named.seq)
       + (octet_length(coalesce(command, argv)) + octet_length(coalesce(env, ''))) / 2048
  from named
 where state = %(state)s
   and finished_at <= %(before)s
   and (%(host)s::text is null or host is null or host = %(host)s
        or not exists (select 1 from queuectl.workers where workers.host = named.host))
 order by finished_at

-- name: ended_completed
-- As `ended`, for completed jobs, which have an index of their own.
select id, log, host,
       greatest(1, runs)
       + (select count(*) from queuectl.output where output.job = jobs.seq)
       + (select count(*) from queuectl.job_tags where job_tags.job = jobs.seq)
       + (octet_length(coalesce(command, argv)) + octet_length(coalesce(env, ''))) / 2048
  from queuectl.jobs
 where state = 'completed'
   and finished_at <= %(before)s
   and (%(host)s::text is null or host is null or host = %(host)s
        or host <> all (array(select workers.host from queuectl.workers)))
 order by finished_at
 limit %(limit)s

-- name: hold_ended
-- Lock jobs that are to be removed, in one order. Sent before `prune`, which then sees all children that were added while it
-- waited for the rows. (SQLite has one writer.)
select 1
  from queuectl.jobs
 where id = any(%(ids)s)
 order by id
   for update

-- name: prune
-- Remove jobs that ended by a time, with their history, output, tags and dependencies, and count that. A job with unresolved
-- children stays. Locked in one order, to avoid deadlocks. Also for dead jobs that a user removes. (SQLite removes one at a
-- time, as the only writer, and has `purge`.)
with chosen as (
    select seq
      from queuectl.jobs
     where id = any(%(ids)s)
       and state in ('completed', 'dead', 'cancelled')
       and finished_at <= %(before)s
       and not exists (select 1 from queuectl.edges where parent = jobs.seq and state = 'waiting')
     order by id
       for update
),
gone as (
    delete from queuectl.jobs
     where seq = any(array(select seq from chosen))
    returning seq, id, queue, state, log
),
history as (
    delete from queuectl.runs
     using gone
     where job = gone.seq
),
printed as (
    delete from queuectl.output
     using gone
     where job = gone.seq
),
tags as (
    delete from queuectl.job_tags
     using gone
     where job = gone.seq
),
of_parents as (
    delete from queuectl.edges
     using gone
     where parent = gone.seq
),
of_children as (
    delete from queuectl.edges
     using gone
     where child = gone.seq
),
counted as (
    insert into queuectl.moves (queue, was, now, ending, jobs)
    select queue, state, '', '', count(*)
      from gone
     group by queue, state
)
select id, log
  from gone

-- name: trim_runs
-- Remove the oldest runs of a job that ended by a time.
delete from queuectl.runs
 where (job, number) in (
    select job, number
      from queuectl.runs
     where job = (
        select seq
          from queuectl.jobs
         where id = %(id)s
           and state in ('completed', 'dead', 'cancelled')
           and finished_at <= %(before)s
           for update
     )
     order by job, number
     limit %(rows)s
 )

-- name: trim_output
-- Remove the oldest output of a job that ended by a time.
delete from queuectl.output
 where (job, run, at) in (
    select job, run, at
      from queuectl.output
     where job = (
        select seq
          from queuectl.jobs
         where id = %(id)s
           and state in ('completed', 'dead', 'cancelled')
           and finished_at <= %(before)s
           for update
     )
     order by job, run, at
     limit %(rows)s
 )

-- name: fold
-- Merge rows of `moves`, if there are many. Skips those that another transaction is merging. A reader sees all of a merge or
-- nothing: the sums never input. (SQLite updates one row, since it has one writer.)
with many as (
    select ctid
      from queuectl.moves
     where (select count(*) from (select 1 from queuectl.moves limit %(many)s) as few) >= %(many)s
     limit %(limit)s
       for update skip locked
),
gone as (
    delete from queuectl.moves
     where ctid = any(array(select ctid from many))
    returning queue, was, now, ending, jobs
)
insert into queuectl.moves (queue, was, now, ending, jobs)
select queue, was, now, ending, sum(jobs)::bigint
  from gone
 group by queue, was, now, ending
