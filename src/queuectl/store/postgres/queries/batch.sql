-- batch: one batch.
select name, added, created_at, completed_at, on_complete, on_complete_job
  from queuectl.batches
 where name = %(name)s
