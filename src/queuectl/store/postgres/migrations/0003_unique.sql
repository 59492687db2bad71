-- Not twice: of the jobs with one key, one at most waits or runs. Whoever has no key is in neither of these, and pays nothing.
create unique index jobs_unique on queuectl.jobs (unique_key)
 where unique_key is not null
   and state <> 'completed'
   and state <> 'dead'
   and state <> 'cancelled';
-- Who had a key last, whatever has become of it.
create index jobs_key on queuectl.jobs (unique_key, created_at, seq) where unique_key is not null;
