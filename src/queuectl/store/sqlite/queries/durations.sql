-- durations: how often each run time occurred among the completed jobs of each queue (not the calls): one scan gives every percentile.
-- In the order of the table, by jobs_state: jobs_completed has them in the order of their end, which takes twice as long.
select queue, duration_ms, count(*)
  from jobs indexed by jobs_state
 where state = 'completed'
   and state <> 'processing'
   and duration_ms is not null
   and queue <> 'queuectl.webhooks'
 group by queue, duration_ms
