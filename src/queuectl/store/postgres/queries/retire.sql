-- retire: forget a worker, unless it holds a job: a job of a worker that nobody knows would never be rescued.
delete from queuectl.workers
 where id = %(id)s
   and not exists (select 1 from queuectl.jobs where worker = %(id)s and state = 'processing')
