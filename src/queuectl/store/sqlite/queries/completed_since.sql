-- completed_since: how many jobs were completed after a moment.
select count(*)
  from jobs indexed by jobs_completed
 where state = 'completed'
   and finished_at > :since
