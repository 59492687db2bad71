-- purge: remove a dead job; its history, output and tags go with it.
delete from jobs
 where seq = ?
   and state = 'dead'
