-- count_out: put the times of jobs that are about to be removed into `buckets`, if nobody has yet: what was counted only grows. (SQLite
-- asks for them and puts them there; here that would be another round trip.) `ids`
-- null: of all jobs. Follows note_removal.sql. In the order of their ends, so that the index is used that has it.
with ended as materialized (
    select queue, duration_ms, wait_ms
      from queuectl.jobs
     where state = 'completed'
       and finished_at > coalesce((select until from queuectl.sampling), 0)
       and finished_at <= %(before)s
       and (
           %(ids)s::text[] is null
           or (id = any(%(ids)s) and not exists (select 1 from queuectl.edges where parent = jobs.seq and state = 'waiting'))
       )
     order by finished_at
)
insert into queuectl.buckets as old (queue, what, bucket, jobs, ms)
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
on conflict (queue, what, bucket) do update set jobs = old.jobs + excluded.jobs, ms = old.ms + excluded.ms
