-- Jobs that wait for other jobs: see job/graph.py for what an edge asks for and what becomes of it.

alter table queuectl.jobs add column depends_on text;  -- what was asked for, with full ids; null: nothing

-- No foreign keys, as for runs and tags: what removes jobs removes these too.
create table queuectl.edges (
    parent bigint not null,
    child bigint not null,
    need text collate "C" not null check (need in ('completed', 'ended', 'failed')),
    otherwise text collate "C" not null check (otherwise in ('cancel', 'run')),
    state text collate "C" not null check (state in ('waiting', 'met', 'broke', 'void')),
    primary key (child, parent)
) with (autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.02);

-- What is to be decided for the children of a parent. (The child is no key here, as it is in SQLite: the planner would look for one
-- through all of them.)
create index edges_parent on queuectl.edges (parent, state, need) include (child);

-- Parents that have ended, or were given another chance, while some of their children have not been told. Whoever trades with
-- the store takes some of them off at a time, so that a parent of ten thousand ends as quickly as one of none.
-- Not one row a parent, as in SQLite: two who name the same one would wait for each other. Who adds an edge names the parent
-- too, since it cannot be seen by one who ends the parent at the same moment.
create table queuectl.undecided (
    parent bigint not null
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- By triggers, and not by each statement that ends a job: there are many, also those of workers of the version before, and one
-- that forgot it would leave a job blocked for ever. With the rights of who made them: a role that could settle a job before can
-- settle it now. Each statement in them sees what has been committed by then, also while the row was waited for.
create function queuectl.note_fate() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select 1 from queuectl.edges where parent = new.seq and state in ('waiting', 'broke')) then
        insert into queuectl.undecided (parent) values (new.seq);
    end if;
    return null;
end
$$;

create trigger jobs_ended after update of state on queuectl.jobs
for each row
when ((new.state in ('completed', 'dead', 'cancelled')) <> (old.state in ('completed', 'dead', 'cancelled')))
execute function queuectl.note_fate();

-- Who is not blocked any more waits for nobody. Who was called off by a parent, and is told to run all the same, is no longer in
-- its hands.
create function queuectl.let_go() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update queuectl.edges
       set state = 'void'
     where child = new.seq
       and state = case old.state when 'blocked' then 'waiting' else 'broke' end;
    return null;
end
$$;

create trigger jobs_let_go after update of state on queuectl.jobs
for each row
when ((old.state = 'blocked' and new.state <> 'blocked') or (old.state = 'cancelled' and new.state = 'pending'))
execute function queuectl.let_go();
