-- forget: a worker whose jobs were taken from it, unless it has begun anew meanwhile.
delete from workers
 where id = :id
   and state = 'lost'
   and not exists (select 1 from jobs indexed by jobs_running where worker = :id and state = 'processing')
