-- completed_since: how many jobs were completed after a moment, without calls.
select count(*)
  from jobs indexed by jobs_completed
 where state = 'completed'
   and finished_at > :since
   and queue <> 'queuectl.webhooks'
