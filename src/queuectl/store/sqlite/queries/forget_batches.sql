-- forget_batches: remove what is left of old batches of which no job is kept any more, and for which nothing is to run.
delete from batches
 where created_at < :before
   and (on_complete is null or completed_at is not null)
   and not exists (select 1 from jobs indexed by jobs_batch where batch = batches.name)
