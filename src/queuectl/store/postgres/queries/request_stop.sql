-- request_stop: ask a worker to stop. "now" is never taken back by a later "finish".
update queuectl.workers
   set stop = case when stop = 'now' then stop else %(mode)s end
 where id = %(id)s
