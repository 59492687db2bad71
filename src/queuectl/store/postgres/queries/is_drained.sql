-- is_drained: has everybody been told what became of their parents, is nothing due in those of these queues (null: all) that are not
-- paused, does nothing run, and waits no retry (of a call: none of the first few)? What is held does not count. Each question is asked of an index that holds only what would deny it; to what is ready it steps from queue to queue, since a
-- paused one may have a million jobs. (SQLite asks is_ready.sql, is_due.sql and is_retrying.sql queue by queue.)
with recursive paused as (
    select name
      from queuectl.queues
     where paused
),
step (queue) as (
    (
        select queue
          from queuectl.jobs
         where ready
         order by queue, run_at
         limit 1
    )
    union all
    select (
        select jobs.queue
          from queuectl.jobs
         where ready
           and jobs.queue > step.queue
         order by jobs.queue, jobs.run_at
         limit 1
    )
      from step
     where step.queue is not null
)
select not exists (select 1 from queuectl.undecided)
   and not (
           exists (select 1 from queuectl.calls)
           and (%(queues)s::text[] is null or 'queuectl.webhooks' = any(%(queues)s::text[]))
       )
   and not exists (
           select 1
             from step
            where queue is not null
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
              and queue not in (select name from paused)
       )
   and not exists (
           select 1
             from queuectl.jobs
            where state = 'processing'
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
              and queue not in (select name from paused)
       )
   and not exists (
           select 1
             from queuectl.jobs
            where state = 'failed'
              and not held
              and (queue <> 'queuectl.webhooks' or attempts < %(patience)s)
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
              and queue not in (select name from paused)
       )
   and not exists (
           select 1
             from queuectl.jobs
            where not ready
              and not held
              and state in ('pending', 'failed')
              and run_at <= %(now)s
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
              and queue not in (select name from paused)
       )
