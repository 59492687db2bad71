-- worked: a worker has settled some runs.
update workers
   set jobs_done = jobs_done + :runs
 where id = :id
