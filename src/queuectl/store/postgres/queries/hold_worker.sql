-- hold_worker: what the worker itself does. Until the end of this transaction nobody rescues or forgets it (take_worker.sql):
-- what it claims meanwhile would belong to a worker that the database does not know. SQLite has one writer anyway.
-- Also which transactions are over now: what comes to the line after is looked at apart by the next claim; and whether any queue
-- is paused or limited, or a job limits its key itself: then a claim has to choose (see claim.sql).
select pg_current_snapshot()::text,
       exists (
           select 1
             from queuectl.queues
            where paused or concurrency is not null or rate_starts is not null or per_key is not null
       )
       or exists (
           select 1
             from queuectl.jobs
            where places is not null
              and state in ('blocked', 'pending', 'processing', 'failed')
       ),
       (
           select id
             from queuectl.locks
            where id = hashtext(%(worker)s) & 1023
              for key share
       )
