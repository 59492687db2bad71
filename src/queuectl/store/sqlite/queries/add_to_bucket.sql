-- add_to_bucket: put times that were measured into their bucket. Positional: the columns of measured.sql.
insert into buckets (queue, what, bucket, jobs, ms)
values (?, ?, ?, ?, ?)
on conflict (queue, what, bucket) do update set jobs = jobs + excluded.jobs, ms = ms + excluded.ms
