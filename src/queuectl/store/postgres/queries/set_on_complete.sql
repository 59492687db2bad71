-- set_on_complete: what runs when all of a batch has ended. Matches nothing if it is to be something else already.
update queuectl.batches
   set on_complete = %(job)s
 where name = %(name)s
   and completed_at is null
   and coalesce(on_complete, %(job)s) = %(job)s
