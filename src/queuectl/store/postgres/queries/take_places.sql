-- take_places: the next sequence numbers, in order, for a batch; null if one of the ids given is taken. Asked before and
-- not after: a sequence never goes back, and a batch that is refused must not count as enqueues (see job/rank.py). Two
-- batches at once may share out the numbers between them; each still gets its own in order.
-- (SQLite has one writer, who counts on from last_seq.sql.)
select case
           when exists (select 1 from queuectl.jobs where id = any(%(ids)s::text[])) then null
           else array(select nextval('queuectl.jobs_seq_seq') from generate_series(1, %(jobs)s))
       end
