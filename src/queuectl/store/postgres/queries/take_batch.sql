-- take_batch: what is to run when this batch has ended, unless somebody was faster. Locked: whoever adds to it waits, and so
-- does whoever else would complete it.
select on_complete
  from queuectl.batches
 where name = %(name)s
   and on_complete is not null
   and completed_at is null
   for update
