-- batch_due: batches that wait for nothing but what is to run when they have ended. States by name: one probe of the index each,
-- however many jobs of the batch have ended.
select name
  from queuectl.batches
 where on_complete is not null
   and completed_at is null
   and not exists (
       select 1
         from queuectl.jobs
        where batch = batches.name
          and state in ('blocked', 'pending', 'processing', 'failed')
   )
 limit 20
