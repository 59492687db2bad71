-- set_on_complete: what runs when all of a batch has ended. Matches nothing if it is to be something else already.
update batches
   set on_complete = :job
 where name = :name
   and completed_at is null
   and coalesce(on_complete, :job) = :job
