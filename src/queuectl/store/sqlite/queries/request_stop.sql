-- request_stop: ask a worker to stop. "now" is never taken back by a later "finish".
update workers
   set stop = iif(stop = 'now', stop, :mode)
 where id = :id
