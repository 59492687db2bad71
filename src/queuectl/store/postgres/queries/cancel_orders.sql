-- cancel_orders: which of a worker's runs somebody called off.
select token
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
   and cancel_requested
