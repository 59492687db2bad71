-- is_drained: is nothing due in these queues (null: all), does nothing run, and waits no retry? Each question is asked of an
-- index that holds only what would deny it.
select not exists (
           select 1
             from queuectl.jobs
            where ready
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
       )
   and not exists (
           select 1
             from queuectl.jobs
            where state = 'processing'
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
       )
   and not exists (
           select 1
             from queuectl.jobs
            where state = 'failed'
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
       )
   and not exists (
           select 1
             from queuectl.jobs
            where not ready
              and not held
              and state in ('pending', 'failed')
              and run_at <= %(now)s
              and (%(queues)s::text[] is null or queue = any(%(queues)s::text[]))
       )
