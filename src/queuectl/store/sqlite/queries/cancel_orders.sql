-- cancel_orders: which of a worker's runs somebody called off.
select token
  from jobs indexed by jobs_running
 where worker = :worker
   and state = 'processing'
   and cancel_requested = 1
