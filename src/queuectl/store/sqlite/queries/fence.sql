-- fence: nothing that this worker writes counts any more, until it begins anew. Only the one that was meant: a sign that it
-- gave meanwhile, or another worker of its name, is left alone.
update workers
   set state = 'lost'
 where id = :id
   and (:started_at is null or started_at = :started_at)
   and (:beats is null or beats = :beats)
