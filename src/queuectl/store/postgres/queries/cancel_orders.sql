-- cancel_orders: which of a worker's runs somebody called off. By an index that holds nothing else, see its migration.
select token
  from queuectl.jobs
 where worker = %(worker)s
   and state = 'processing'
   and cancel_requested
