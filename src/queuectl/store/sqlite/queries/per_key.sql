-- per_key: the queues with a limit by key.
select name, per_key
  from queues
 where per_key is not null
