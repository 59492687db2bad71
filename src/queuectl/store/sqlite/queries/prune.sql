-- prune: remove a job that has ended by a moment; its history, output and tags go with it.
delete from jobs
 where id = :id
   and state in ('completed', 'dead', 'cancelled')
   and finished_at <= :before
returning queue, state, log
