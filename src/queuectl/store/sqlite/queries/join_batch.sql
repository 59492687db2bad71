-- join_batch: jobs come to a batch, which is made if there is none. When it was complete, if it is already.
insert into batches (name, added, created_at)
values (:name, :jobs, :now)
on conflict (name) do update set added = added + excluded.added
returning completed_at
