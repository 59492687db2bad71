-- died_since: how many jobs of each queue died after a moment, and are dead.
select queue, count(*)
  from queuectl.jobs
 where state = 'dead'
   and finished_at > %(since)s
 group by queue
