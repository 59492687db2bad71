-- join_batch: jobs come to a batch, which is made if there is none. When it was complete, if it is already.
insert into queuectl.batches (name, added, created_at)
values (%(name)s, %(jobs)s, %(now)s)
on conflict (name) do update set added = batches.added + excluded.added
returning completed_at
