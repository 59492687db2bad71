-- complete_batch: a batch has ended, and the job that runs then is queued.
update batches
   set completed_at = :now,
       on_complete_job = :job
 where name = :name
   and completed_at is null
