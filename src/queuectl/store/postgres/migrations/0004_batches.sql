-- Batches: jobs under one name, and what is to run when all of them have ended. How many of them are in which state is counted
-- from an index: nothing is written for it when a job moves, and only jobs of a batch are in it.
create table queuectl.batches (
    name text collate "C" primary key check (length(name) between 1 and 64),
    added bigint not null,    -- jobs that ever came to it, also those that were removed since
    created_at bigint not null,
    completed_at bigint,      -- when what runs then was queued; from then on nobody comes to it
    on_complete text,         -- the job, as JSON; null: nothing runs
    on_complete_job text,     -- the id it got
    check ((completed_at is null) = (on_complete_job is null))
) with (fillfactor = 50);

create index batches_open on queuectl.batches (name) where on_complete is not null and completed_at is null;

alter table queuectl.jobs add column batch text collate "C";

create index jobs_batch on queuectl.jobs (batch, state) where batch is not null;
