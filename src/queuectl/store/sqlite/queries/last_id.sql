-- last_id: the job enqueued last. Not one that tells of the end of another: nobody has enqueued it.
select id
  from jobs
 where queue <> 'queuectl.webhooks'
 order by seq desc
 limit 1
