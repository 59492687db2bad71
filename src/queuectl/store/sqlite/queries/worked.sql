-- worked: a worker has brought some jobs to their end.
update workers
   set jobs_done = jobs_done + :jobs
 where id = :id
