-- note_removal: jobs that ended by a moment are about to be removed, and the times of some may not be in `buckets` yet. Nothing
-- changes if they are: the usual case.
insert into sampling (one, at, until, removals)
values (1, null, 0, 1)
on conflict (one) do update
   set removals = removals + 1
 where until < :before
