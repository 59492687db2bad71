-- is_retrying: waits a retry of this queue that nobody holds back (of a call: one of the first few)?
-- (PostgreSQL: is_drained.sql asks for all queues at once.)
select exists (
    select 1
      from jobs indexed by jobs_state
     where state = 'failed'
       and state <> 'processing'
       and held = 0
       and queue = :queue
       and (queue <> 'queuectl.webhooks' or attempts < :patience)
)
