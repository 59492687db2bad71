-- name: ids_from
-- IDs that begin with a text, an exact match first. The upper bound keeps it inside the index on id.
select id
  from jobs
 where id >= :ref
   and id < :ref || char(1114111)
 order by id
 limit :limit

-- name: ahead
-- How many jobs of a queue would be claimed before this position, counted up to a limit.
select count(*)
  from (
    select 1
      from jobs indexed by jobs_ready
     where queue = :queue
       and ready = 1
       and key_blocked = 0
       and (rank, seq) < (:rank, :seq)
     limit :limit
  )

-- name: late
-- Jobs that are due but not promoted yet: there is no worker, or it is about to promote them.
select queue, rank, seq
  from jobs indexed by jobs_due
 where ready = 0
   and held = 0
   and state in ('pending', 'failed')
   and run_at <= :now
 order by run_at
 limit :limit

-- name: strays
-- By table, the rows of jobs that do not exist.
select "table", count(*)
  from pragma_foreign_key_check()
 group by "table"

-- name: failures
-- Dead jobs by kind of failure, the most frequent first, and of each kind the job that died last. Reads the entries of an index, not
-- the jobs.
with kinds as (
    select fingerprint, count(*) as jobs, max(finished_at) as at, min(queue) as least, max(queue) as greatest
      from jobs indexed by jobs_failures
     where state = 'dead'
       and fingerprint is not null
       and queue <> 'queuectl.webhooks'
     group by fingerprint
     order by count(*) desc, max(finished_at) desc, fingerprint
     limit :limit
)
select kinds.fingerprint, coalesce(error, ''), last_output, iif(least = greatest, least, null), kinds.jobs, id, at
  from kinds
  join jobs on seq = (
      select seq
        from jobs indexed by jobs_failures
       where state = 'dead'
         and queue <> 'queuectl.webhooks'
         and fingerprint = kinds.fingerprint
       order by finished_at desc, seq desc
       limit 1
  )
 order by kinds.jobs desc, at desc, kinds.fingerprint
