-- first_created: when the first of all jobs that are there was enqueued.
select created_at
  from queuectl.jobs
 order by seq
 limit 1
