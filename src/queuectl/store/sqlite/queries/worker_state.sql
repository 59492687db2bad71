-- worker_state: whether a worker is known, and what it is doing.
select state
  from workers
 where id = ?
