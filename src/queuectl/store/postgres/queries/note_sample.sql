-- note_sample: it is we who look in this minute, unless somebody was faster, or has removed jobs whose times we have seen.
insert into queuectl.sampling as old (one, at, until, removals)
values (1, %(at)s, %(until)s, 0)
on conflict (one) do update
   set at = excluded.at, until = excluded.until
 where old.at is not distinct from %(last)s::bigint
   and old.until = %(since)s
   and old.removals = %(removals)s
