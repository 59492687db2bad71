-- measured: run and waiting times of the jobs that were completed after a moment and up to another, in buckets: see
-- job/buckets.py. One way through the index for both.
with ended as materialized (
    select queue, duration_ms, wait_ms
      from queuectl.jobs
     where state = 'completed'
       and finished_at > %(since)s
       and finished_at <= %(until)s
)
select queue, what,
       width_bucket(
           ms - 1,
           array[10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 14400000,
                 86400000]::bigint[]
       ) as bucket,
       count(*), sum(ms)::bigint
  from (
    select queue, 'run' as what, duration_ms as ms
      from ended
    union all
    select queue, 'wait', wait_ms
      from ended
  ) as times
 where ms is not null
 group by queue, what, bucket
