-- forget: a worker whose jobs were taken from it, unless it has begun anew meanwhile.
delete from queuectl.workers
 where id = %(id)s
   and state = 'lost'
   and not exists (select 1 from queuectl.jobs where worker = %(id)s and state = 'processing')
