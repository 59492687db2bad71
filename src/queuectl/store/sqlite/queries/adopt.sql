-- adopt: what a worker has running passes to another.
update jobs
   set worker = :by
 where worker = :worker
   and state = 'processing'
   and token in (select value from json_each(:tokens))
returning token
