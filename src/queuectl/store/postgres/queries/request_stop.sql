-- request_stop: ask a worker to stop. "now" is never taken back by a later "finish", and who is to end does not begin anew.
update queuectl.workers
   set stop = case when stop = 'now' or (stop is not null and %(mode)s = 'restart') then stop else %(mode)s end
 where id = %(id)s
