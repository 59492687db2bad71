-- durations: how often each run time occurred among the completed jobs of each queue (not the calls): one scan gives every percentile.
select queue, duration_ms, count(*)
  from queuectl.jobs
 where state = 'completed'
   and duration_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, duration_ms
