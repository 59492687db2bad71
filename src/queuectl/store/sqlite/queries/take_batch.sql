-- take_batch: what is to run when this batch has ended, unless somebody was faster. Under the write lock: is it still due?
select on_complete
  from batches
 where name = :name
   and on_complete is not null
   and completed_at is null
