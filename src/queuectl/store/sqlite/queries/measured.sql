-- measured: run and waiting times of the jobs that were completed after a moment and up to another, in buckets: see
-- job/buckets.py. One way through the index for both.
with ended as materialized (
    select queue, duration_ms, wait_ms
      from jobs indexed by jobs_completed
     where state = 'completed'
       and finished_at > :since
       and finished_at <= :until
)
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
