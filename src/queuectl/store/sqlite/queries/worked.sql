-- worked: a worker has brought some jobs to their end. (PostgreSQL does so within settle.sql, by a row of `done`.)
update workers
   set jobs_done = jobs_done + :jobs
 where id = :id
