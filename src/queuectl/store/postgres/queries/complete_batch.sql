-- complete_batch: a batch has ended, and the job that runs then is queued.
update queuectl.batches
   set completed_at = %(now)s,
       on_complete_job = %(job)s
 where name = %(name)s
   and completed_at is null
