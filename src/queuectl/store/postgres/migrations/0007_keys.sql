-- Limits by key: of the jobs of one queue with one key at most so many run at a time.
alter table queuectl.jobs add column key text collate "C";

-- Stands aside: its time has come, but others of its key have all places. Not in the line, so that no claim has to step over it;
-- who makes room lets it back, see admit.sql.
alter table queuectl.jobs add column aside boolean not null default false
    check (not aside or (ready and key is not null));

alter table queuectl.queues add column per_key integer check (per_key >= 1);

drop index queuectl.jobs_ready;
drop index queuectl.jobs_line;
drop index queuectl.jobs_fresh;
create index jobs_ready on queuectl.jobs (queue, rank, seq) where ready and not aside;
create index jobs_line on queuectl.jobs (rank, seq) where ready and not aside;
create index jobs_fresh on queuectl.jobs (ready_since) where ready and not aside;
-- Who of a key goes first, and who runs. Whoever has no key is in neither, and pays nothing.
create index jobs_of_key on queuectl.jobs (queue, key, rank, seq) where ready and key is not null;
create index jobs_running_key on queuectl.jobs (queue, key) where state = 'processing' and key is not null;
