-- fence: nothing that this worker writes counts any more, until it begins anew.
update queuectl.workers
   set state = 'lost'
 where id = %(id)s
