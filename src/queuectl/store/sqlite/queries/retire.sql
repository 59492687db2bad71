-- retire: forget a worker, unless it holds a job: a job of a worker that nobody knows would never be rescued.
delete from workers
 where id = :id
   and not exists (select 1 from jobs indexed by jobs_running where worker = :id and state = 'processing')
