-- running_of_key: how many jobs of a queue with this key run.
select count(*)
  from jobs indexed by jobs_running_key
 where queue = :queue
   and key = :key
   and state = 'processing'
