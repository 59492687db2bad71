-- adopt: what a worker has running passes to another, if that one is known.
update queuectl.jobs
   set worker = %(by)s
 where worker = %(worker)s
   and state = 'processing'
   and token = any(%(tokens)s)
   and exists (select 1 from queuectl.workers where id = %(by)s and state <> 'lost')
returning token
