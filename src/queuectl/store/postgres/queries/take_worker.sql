-- take_worker: what other processes do to a worker. Waits for what it is just doing, see hold_worker.sql. (SQLite has one writer.)
select id
  from queuectl.locks
 where id = hashtext(%(worker)s) & 1023
   for update
