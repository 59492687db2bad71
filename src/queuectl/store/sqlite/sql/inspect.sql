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

-- name: dead_by_error
-- The errors of dead jobs, the most frequent first, among those that died last: reading all would take time in proportion to
-- their number. SQLite takes the other columns from the row that has the max(): the job that died last.
select substr(coalesce(error, ''), 1, :shown) as why,
       case when count(distinct queue) = 1 then queue end,
       count(*) as jobs,
       id,
       max(finished_at) as at
  from (
      select error, queue, id, finished_at
        from jobs indexed by jobs_ended
       where state = 'dead'
         and queue <> 'queuectl.webhooks'
       order by finished_at desc
       limit :most
  )
 group by why
 order by jobs desc, at desc, why
 limit :limit
