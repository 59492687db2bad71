-- name: ids_from
-- IDs that begin with a text, an exact match first. The upper bound keeps it inside the index on id.
select id
  from queuectl.jobs
 where id >= %(ref)s
   and id < %(ref)s || chr(1114111)
 order by id
 limit %(limit)s

-- name: ahead
-- How many jobs of a queue would be claimed before this position, counted up to a limit. The range is in the order of
-- jobs_ready, also where it means one value: no other index gives that order.
select count(*)
  from (
    select 1
      from queuectl.jobs
     where ready
       and not key_blocked
       and (queue, rank, seq) > (%(queue)s, -9223372036854775807, 0)
       and (queue, rank, seq) < (%(queue)s, %(rank)s, %(seq)s)
     order by queue, rank, seq
     limit %(limit)s
  ) as before

-- name: ahead_of_all
-- The same over all queues in one order, along jobs_by_rank. (SQLite asks `ahead` of one queue after the other.)
select count(*)
  from (
    select 1
      from queuectl.jobs
     where ready
       and not key_blocked
       and (rank, seq) < (%(rank)s, %(seq)s)
     order by rank, seq
     limit %(limit)s
  ) as before

-- name: late
-- Jobs that are due but not promoted yet: there is no worker, or it is about to promote them.
select queue, rank, seq
  from queuectl.jobs
 where not ready
   and not held
   and state in ('pending', 'failed')
   and run_at <= %(now)s
 order by run_at
 limit %(limit)s

-- name: strays
-- By table, the rows of jobs that do not exist. There are no foreign keys here, see the schema.
select 'runs', count(*)
  from queuectl.runs
 where not exists (select 1 from queuectl.jobs where seq = runs.job)
union all
select 'output', count(*)
  from queuectl.output
 where not exists (select 1 from queuectl.jobs where seq = output.job)
union all
select 'job_tags', count(*)
  from queuectl.job_tags
 where not exists (select 1 from queuectl.jobs where seq = job_tags.job)
union all
select 'edges', count(*)
  from queuectl.edges
 where not exists (select 1 from queuectl.jobs where seq = edges.parent)
    or not exists (select 1 from queuectl.jobs where seq = edges.child)

-- name: dead_by_error
-- The errors of dead jobs, the most frequent first, among those that died last: reading all would take time in proportion to
-- their number. With the job of each error that died last.
with latest as (
    select error, queue, seq, finished_at
      from queuectl.jobs
     where state = 'dead'
       and queue <> 'queuectl.webhooks'
       and finished_at is not null
     order by finished_at desc
     limit %(most)s
),
deaths as (
    select left(coalesce(error, ''), %(shown)s) as why,
           case when min(queue) = max(queue) then min(queue) end as queue,
           count(*) as jobs,
           max(array[finished_at, seq]) as newest
      from latest
     group by why
     order by jobs desc, max(finished_at) desc, why
     limit %(limit)s
)
select why, deaths.queue, deaths.jobs, id, newest[1]
  from deaths
  join queuectl.jobs on seq = newest[2]
 order by deaths.jobs desc, newest[1] desc, why
