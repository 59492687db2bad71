-- note_removal: jobs that ended by a moment are about to be removed, and the times of some may not be in `buckets` yet. Nothing
-- changes if they are: the usual case. Else the row stays ours, so that nobody who looks counts them, too.
insert into queuectl.sampling as old (one, at, until, removals)
values (1, null, 0, 1)
on conflict (one) do update
   set removals = old.removals + 1
 where old.until < %(before)s
