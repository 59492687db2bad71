-- recent_starts: how many starts the window of each queue with a rate holds that ends now.
select name, (select count(*) from queuectl.starts where queue = name and at > %(now)s - rate_ms)
  from queuectl.queues
 where rate_starts is not null
