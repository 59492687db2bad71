-- count_out: put the times of jobs into `buckets`, if nobody has yet, when all are about to be removed: what was counted only grows.
-- Follows note_removal.sql. (PostgreSQL also when some are; here they are removed one by one, see prune.sql.)
with ended as materialized (
    select queue, duration_ms, wait_ms
      from jobs indexed by jobs_completed
     where state = 'completed'
       and finished_at > coalesce((select until from sampling), 0)
)
insert into buckets (queue, what, bucket, jobs, ms)
select queue, what,
       (ms > 10) + (ms > 25) + (ms > 50) + (ms > 100) + (ms > 250) + (ms > 500) + (ms > 1000) + (ms > 2500) + (ms > 5000)
       + (ms > 10000) + (ms > 30000) + (ms > 60000) + (ms > 300000) + (ms > 900000) + (ms > 3600000) + (ms > 14400000)
       + (ms > 86400000) as bucket,
       count(*), sum(ms)
  from (
    select queue, 'run' as what, duration_ms as ms
      from ended
    union all
    select queue, 'wait', wait_ms
      from ended
  )
 where ms is not null
 group by queue, what, bucket
on conflict (queue, what, bucket) do update set jobs = jobs + excluded.jobs, ms = ms + excluded.ms
