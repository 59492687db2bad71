-- A job may say itself how many of its key run at a time: those of an array. Null: what its queue says counts.
alter table jobs add column places integer check (places is null or (places >= 1 and key is not null));

-- Which queues have such jobs that have not ended. Whoever says nothing is not in it, and pays nothing.
create index jobs_places on jobs (queue) where places is not null and state in ('blocked', 'pending', 'processing', 'failed');
