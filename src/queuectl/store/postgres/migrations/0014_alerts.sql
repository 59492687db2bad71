-- When somebody is to be told that things go wrong, see job/alert.py, and how each stands. Times are milliseconds since 1970.
create table queuectl.alerts (
    name text primary key check (length(name) between 1 and 64),
    kind text not null check (kind in ('dead', 'oldest', 'no-worker')),
    threshold bigint not null, -- a number of jobs, or milliseconds
    within_ms bigint,
    queue text,
    for_ms bigint not null,
    repeat_ms bigint,
    url text,
    command text,
    cwd text not null,
    created_at bigint not null,
    firing boolean not null,
    changed_at bigint,
    since_at bigint,
    told_at bigint,
    seen_at bigint,
    checked_at bigint,
    value bigint,
    untold text not null, -- JSON
    tried_at bigint,
    turn bigint not null, -- how often it was written
    check ((url is null) <> (command is null))
);
