-- last_id: the job enqueued last.
select id
  from queuectl.jobs
 order by seq desc
 limit 1
