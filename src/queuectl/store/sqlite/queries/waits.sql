-- waits: how often each waiting time occurred among the completed jobs of each queue. See durations.sql.
select queue, wait_ms, count(*)
  from jobs indexed by jobs_state
 where state = 'completed'
   and state <> 'processing'
   and wait_ms is not null
 group by queue, wait_ms
