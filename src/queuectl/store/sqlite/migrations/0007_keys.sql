-- Limits by key: of the jobs of one queue with one key at most so many run at a time.
alter table jobs add column key text;

-- Stands aside: its time has come, but others of its key have all places. Not in the line, so that no claim has to step over it;
-- who makes room lets it back, see admit.sql.
alter table jobs add column aside integer not null default 0
    check (aside = 0 or (aside = 1 and ready = 1 and key is not null));

alter table queues add column per_key integer check (per_key >= 1);

drop index jobs_ready;
create index jobs_ready on jobs (queue, rank, seq) where ready = 1 and aside = 0;
-- Who of a key goes first, and who runs. Whoever has no key is in neither, and pays nothing.
create index jobs_of_key on jobs (queue, key, rank, seq) where ready = 1 and key is not null;
create index jobs_running_key on jobs (queue, key) where state = 'processing' and key is not null;
