-- Whom to tell what becomes of a job: fixed at enqueue, as plain data, see job/hooks.py. Null: nobody.
alter table jobs add column hooks text;

-- The same for the jobs of a queue that do not say otherwise.
alter table queues add column on_success text;
alter table queues add column on_failure text;
alter table queues add column on_dead text;

-- Who is to be told of ends that have been written, until a job has been made of it, see store/calling.py.
create table calls (
    job text not null,
    run integer not null,
    happening text not null,
    url text not null,
    said text not null,
    at integer not null
) strict;
