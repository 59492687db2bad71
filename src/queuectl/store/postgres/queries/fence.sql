-- fence: nothing that this worker writes counts any more, until it begins anew. Only the one that was meant: a sign that it
-- gave meanwhile, or another worker of its name, is left alone.
update queuectl.workers
   set state = 'lost'
 where id = %(id)s
   and (%(started_at)s::bigint is null or started_at = %(started_at)s)
   and (%(beats)s::bigint is null or beats = %(beats)s)
