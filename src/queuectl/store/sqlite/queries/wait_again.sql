-- wait_again: a job that is blocked again waits for all of its parents that it did not have to wait for meanwhile.
update edges
   set state = 'waiting'
 where child = ?
   and state = 'void'
returning parent
