-- fence: nothing that this worker writes counts any more, until it begins anew.
update workers
   set state = 'lost'
 where id = :id
