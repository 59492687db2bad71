-- note_sample: it is we who look in this minute, unless somebody was faster, or has removed jobs whose times we have seen.
insert into sampling (one, at, until, removals)
values (1, :at, :until, 0)
on conflict (one) do update
   set at = excluded.at, until = excluded.until
 where at is :last
   and until = :since
   and removals = :removals
