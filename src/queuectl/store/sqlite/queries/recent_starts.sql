-- recent_starts: how many starts the window of each queue with a rate holds that ends now.
select name, (select count(*) from starts where queue = name and at > :now - rate_ms)
  from queues
 where rate_starts is not null
