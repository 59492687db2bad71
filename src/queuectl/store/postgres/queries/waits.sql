-- waits: how often each waiting time occurred among the completed jobs of each queue (not the calls).
select queue, wait_ms, count(*)
  from queuectl.jobs
 where state = 'completed'
   and wait_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, wait_ms
