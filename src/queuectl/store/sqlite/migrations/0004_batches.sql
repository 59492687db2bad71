-- Batches: jobs under one name, and what is to run when all of them have ended. How many of them are in which state is counted
-- from an index: nothing is written for it when a job moves, and only jobs of a batch are in it.
create table batches (
    name text primary key check (length(name) between 1 and 64),
    added integer not null,   -- jobs that ever came to it, also those that were removed since
    created_at integer not null,
    completed_at integer,     -- when what runs then was queued; from then on nobody comes to it
    on_complete text,         -- the job, as JSON; null: nothing runs
    on_complete_job text,     -- the id it got
    check ((completed_at is null) = (on_complete_job is null))
) strict, without rowid;

create index batches_open on batches (name) where on_complete is not null and completed_at is null;

alter table jobs add column batch text;

create index jobs_batch on jobs (batch, state) where batch is not null;
