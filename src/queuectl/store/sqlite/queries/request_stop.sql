-- request_stop: ask a worker to stop. "now" is never taken back by a later "finish", and who is to end does not begin anew.
update workers
   set stop = case when stop = 'now' or (stop is not null and :mode = 'restart') then stop else :mode end
 where id = :id
