-- running_of_key: how many jobs of a queue with this key run. (PostgreSQL: running_of_keys.sql, for many at once.)
select count(*)
  from jobs indexed by jobs_running_key
 where queue = :queue
   and key = :key
   and state = 'processing'
