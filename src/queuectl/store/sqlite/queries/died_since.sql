-- died_since: how many jobs of each queue died after a moment, and are dead.
select queue, count(*)
  from jobs indexed by jobs_ended
 where state = 'dead'
   and finished_at > :since
 group by queue
