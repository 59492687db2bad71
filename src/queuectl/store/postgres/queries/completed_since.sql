-- completed_since: how many jobs were completed after a moment, without calls.
select count(*)
  from queuectl.jobs
 where state = 'completed'
   and finished_at > %(since)s
   and queue <> 'queuectl.webhooks'
