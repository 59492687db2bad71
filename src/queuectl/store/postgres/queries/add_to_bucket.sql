-- add_to_bucket: put times that were measured into their bucket. Positional: the columns of measured.sql.
insert into queuectl.buckets as old (queue, what, bucket, jobs, ms)
values (%s, %s, %s, %s, %s)
on conflict (queue, what, bucket) do update set jobs = old.jobs + excluded.jobs, ms = old.ms + excluded.ms
