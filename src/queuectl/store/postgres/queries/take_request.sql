-- take_request: make this key ours, unless somebody has it who did not come too long ago. Whoever comes with it at the same moment
-- waits here until we are done. (SQLite has one writer.)
insert into queuectl.requests as old (key, digest, answer, at)
values (%(key)s, %(digest)s, '', %(now)s)
on conflict (key) do update
   set digest = excluded.digest, answer = '', at = excluded.at
 where old.at <= %(before)s
returning 1
