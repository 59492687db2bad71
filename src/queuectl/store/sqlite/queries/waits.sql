-- waits: how often each waiting time occurred among the completed jobs of each queue (not the calls). See durations.sql.
select queue, wait_ms, count(*)
  from jobs indexed by jobs_state
 where state = 'completed'
   and state <> 'processing'
   and wait_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, wait_ms
