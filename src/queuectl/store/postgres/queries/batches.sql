-- batches: all batches, the newest first.
select name, added, created_at, completed_at, on_complete, on_complete_job
  from queuectl.batches
 order by created_at desc, name
