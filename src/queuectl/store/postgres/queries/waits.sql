-- waits: how often each waiting time occurred among the completed jobs of each queue.
select queue, wait_ms, count(*)
  from queuectl.jobs
 where state = 'completed'
   and wait_ms is not null
 group by queue, wait_ms
