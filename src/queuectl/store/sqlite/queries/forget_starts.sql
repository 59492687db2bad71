-- forget_starts: a queue has no rate any more.
delete from starts
 where queue = :queue
