-- Jobs that wait for other jobs: see job/graph.py for what an edge asks for and what becomes of it.

alter table jobs add column depends_on text;  -- what was asked for, with full ids; null: nothing

create table edges (
    parent integer not null references jobs (seq) on delete cascade,
    child integer not null references jobs (seq) on delete cascade,
    need text not null check (need = 'completed' or need = 'ended' or need = 'failed'),
    otherwise text not null check (otherwise = 'cancel' or otherwise = 'run'),
    state text not null check (state = 'waiting' or state = 'met' or state = 'broke' or state = 'void'),
    primary key (child, parent)
) strict, without rowid;

-- What is to be decided for the children of a parent.
create index edges_parent on edges (parent, state, need, child);

-- Parents that have ended, or were given another chance, while some of their children have not been told. Whoever trades with
-- the store takes some of them off at a time, so that a parent of ten thousand ends as quickly as one of none.
create table undecided (
    parent integer primary key references jobs (seq) on delete cascade
) strict;

-- By triggers, and not by each statement that ends a job: there are many, also those of workers of the version before, and one
-- that forgot it would leave a job blocked for ever.
create trigger jobs_ended after update of state on jobs
when (new.state = 'completed' or new.state = 'dead' or new.state = 'cancelled')
  <> (old.state = 'completed' or old.state = 'dead' or old.state = 'cancelled')
begin
    insert or ignore into undecided (parent)
    select new.seq
     where exists (select 1 from edges where parent = new.seq and state = 'waiting')
        or exists (select 1 from edges where parent = new.seq and state = 'broke');
end;

-- Who is not blocked any more waits for nobody. Who was called off by a parent, and is told to run all the same, is no longer in
-- its hands.
create trigger jobs_let_go after update of state on jobs
when (old.state = 'blocked' and new.state <> 'blocked') or (old.state = 'cancelled' and new.state = 'pending')
begin
    update edges
       set state = 'void'
     where child = new.seq
       and state = iif(old.state = 'blocked', 'waiting', 'broke');
end;
