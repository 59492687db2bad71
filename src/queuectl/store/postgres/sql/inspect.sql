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

-- name: failures
-- Dead jobs by kind of failure, the most frequent first, and of each kind the job that died last. Reads the entries of an index, not
-- the jobs.
with kinds as (
    select fingerprint, count(*) as jobs, max(finished_at) as at, min(queue) as least, max(queue) as greatest
      from queuectl.jobs
     where state = 'dead'
       and fingerprint is not null
       and queue <> 'queuectl.webhooks'
     group by fingerprint
     order by count(*) desc, max(finished_at) desc, fingerprint
     limit %(limit)s
)
select kinds.fingerprint, coalesce(newest.error, ''), newest.last_output, case when least = greatest then least end, kinds.jobs,
       newest.id, at
  from kinds
 cross join lateral (
      select error, last_output, id
        from queuectl.jobs
       where state = 'dead'
         and queue <> 'queuectl.webhooks'
         and fingerprint = kinds.fingerprint
       order by finished_at desc, seq desc
       limit 1
  ) as newest
 order by kinds.jobs desc, at desc, kinds.fingerprint
