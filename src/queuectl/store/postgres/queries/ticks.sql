-- ticks: what was decided about the ticks of a schedule, the latest first; `fired`: only those with a job. How that job is now is there
-- unless it was removed.
select ticks.at, ticks.decided_at, ticks.job, ticks.reason, ticks.times, ticks.by_hand, jobs.state, jobs.exit_code, jobs.error
  from queuectl.ticks
  left join queuectl.jobs on jobs.id = ticks.job
 where ticks.schedule = %(schedule)s
   and (ticks.job is not null or not %(fired)s)
 order by ticks.at desc, ticks.by_hand desc
 limit %(limit)s
