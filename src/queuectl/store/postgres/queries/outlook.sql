-- outlook: what a worker has to know after an exchange: when the next job comes due, whether children wait to be told what became of
-- their parents, whether webhook deliveries wait, and the server's clock in milliseconds (see promote.sql).
-- (SQLite asks before it writes.)
select (
           select run_at
             from queuectl.jobs
            where not ready
              and not held
              and state in ('pending', 'failed')
            order by run_at
            limit 1
       ),
       exists (select 1 from queuectl.undecided),
       (
           select true
             from queuectl.jobs
            where ready
              and not aside
              and (queue, rank, seq) > ('queuectl.webhooks', -9223372036854775808, 0)
              and queue <= 'queuectl.webhooks'
            order by queue, rank, seq
            limit 1
       ),
       extract(epoch from clock_timestamp())::float8 * 1000
