-- When somebody is to be told that things go wrong, see job/alert.py, and how each stands. Times are milliseconds since 1970.
create table alerts (
    name text primary key check (length(name) between 1 and 64),
    kind text not null check (kind in ('dead', 'oldest', 'no-worker')),
    threshold integer not null, -- a number of jobs, or milliseconds
    within_ms integer,
    queue text,
    for_ms integer not null,
    repeat_ms integer,
    url text,
    command text,
    cwd text not null,
    created_at integer not null,
    firing integer not null check (firing in (0, 1)),
    changed_at integer,
    since_at integer,
    told_at integer,
    seen_at integer,
    checked_at integer,
    value integer,
    untold text not null, -- JSON
    tried_at integer,
    turn integer not null, -- how often it was written
    check ((url is null) <> (command is null))
) strict, without rowid;
