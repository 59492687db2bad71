-- worker_state: whether a worker is known, and what it is doing. (PostgreSQL looks within adopt.sql.)
select state
  from workers
 where id = ?
