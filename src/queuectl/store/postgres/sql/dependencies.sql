-- name: link
-- Store dependencies, as a stream of rows.
copy queuectl.edges (parent, child, need, otherwise, state) from stdin

-- name: new_parents
-- The parents of new jobs. They are not removed until the end of this transaction; they may end meanwhile, see the table
-- `undecided`.
select id, seq, state
  from queuectl.jobs
 where id = any(%(ids)s::text[])
 order by id
   for key share

-- name: leave_undecided
-- Resolve the children of these parents: one may have ended before it could see its new child.
copy queuectl.undecided (parent) from stdin

-- name: note_undecided
-- Mark all parents with unresolved dependencies, in a store that was filled row by row.
insert into queuectl.undecided (parent)
select distinct edges.parent
  from queuectl.edges
  join queuectl.jobs on jobs.seq = edges.parent
 where (edges.state = 'waiting' and jobs.state in ('completed', 'dead', 'cancelled'))
    or (edges.state = 'broke' and jobs.state not in ('dead', 'cancelled'))

-- name: undecided
-- Parents with unresolved dependencies. Skips those that another transaction is resolving.
select ctid::text, parent
  from queuectl.undecided
 limit %(limit)s
   for update skip locked

-- name: release_job
-- Release a job that waited for earlier ones of its schedule. It may have been cancelled meanwhile.
update queuectl.jobs
   set held = false,
       ready = run_at <= %(now)s,
       ready_since = pg_current_xact_id(),
       updated_at = greatest(updated_at, %(now)s)
 where id = %(id)s
   and held
   and state in ('pending', 'failed')

-- name: unfinished_jobs
-- Some unfinished jobs of a schedule, and the one that is held until others have ended, which may be among many.
(
    select id, held
      from queuectl.jobs
     where cron = %(name)s
       and state in ('pending', 'processing', 'failed', 'blocked')
     limit %(limit)s
)
union
select id, held
  from queuectl.jobs
 where id = %(waiting)s
   and state in ('pending', 'processing', 'failed', 'blocked')
 order by 1

-- name: decidable
-- Dependencies whose state is outdated: those that wait for a parent that has ended, and those that were broken by one that
-- would not break them now. Each kind by the index.
select parent.seq, edge.child
  from queuectl.jobs as parent
 cross join lateral (
    (
        select child
          from queuectl.edges
         where edges.parent = parent.seq
           and edges.state = 'waiting'
           and parent.state in ('completed', 'dead', 'cancelled')
         limit %(limit)s
    )
    union all
    (
        select mended.child
          from (values ('completed', 'completed'), ('failed', 'dead')) as kind (need, meets)
         cross join lateral (
            select child
              from queuectl.edges
             where edges.parent = parent.seq
               and edges.state = 'broke'
               and edges.need = kind.need
               and (parent.state = kind.meets or parent.state not in ('completed', 'dead', 'cancelled'))
             limit %(limit)s
         ) as mended
    )
 ) as edge
 where parent.seq = any(%(parents)s)
 limit %(limit)s

-- name: decided
-- All dependencies on these parents are resolved. By the rows that were locked: a row that was added since means that there may
-- be more.
delete from queuectl.undecided
 where ctid = any(%(rows)s::tid[])

-- name: clear_resolved
-- Remove the rows that triggers added in this transaction for jobs whose children are resolved already. Rows of jobs with an
-- outdated dependency (see `decidable`) stay, and so do those of other transactions. Dependencies are looked up for each row by
-- the index, whatever number of rows the planner expects. (SQLite has one row per parent.)
delete from queuectl.undecided
 where xmin = pg_current_xact_id()::xid
   and (
       select count(*)
         from (
           select 1
             from queuectl.jobs
             join queuectl.edges
               on edges.parent = jobs.seq
            where jobs.seq = undecided.parent
              and (
                  (edges.state = 'waiting' and jobs.state in ('completed', 'dead', 'cancelled'))
                  or (edges.state = 'broke' and jobs.state <> 'cancelled')
              )
            limit 1
         ) as open
   ) = 0

-- name: mark_edge
-- Write the states of dependencies. (SQLite writes one by one, as in `settle`.)
update queuectl.edges
   set state = input.state
  from json_to_recordset(%(changes)s::json) as input (child bigint, parent bigint, state text)
 where edges.child = input.child
   and edges.parent = input.parent

-- name: open_edges
-- The dependencies of some jobs, which are locked, that may still input. (SQLite: `is_waiting`, one child at a time.)
select parent, child, need, otherwise, state
  from queuectl.edges
 where child = any(%(children)s)
   and state in ('waiting', 'broke')
 order by child, parent

-- name: followers
-- Jobs that change in the same way as their parents, transitively: a child that needs a cancelled job is cancelled, and a child
-- that was cancelled by a job that is blocked again is blocked again. Nearest first, including the jobs themselves. `limit`
-- keeps the planner from reading all dependencies. (SQLite handles one parent after the other in one transaction.)
with recursive follower (seq, fate) as (
    select input.seq, input.fate
      from unnest(%(seqs)s::bigint[], %(fates)s::text[]) as input (seq, fate)
    union
    select behind.child, follower.fate
      from follower
     cross join lateral (
        select child
          from queuectl.edges
         where edges.parent = follower.seq
           and edges.state = case follower.fate when 'cancelled' then 'waiting' else 'broke' end
           and edges.need <> 'ended'
           and (edges.otherwise = 'cancel' or follower.fate = 'blocked')
         limit %(limit)s
     ) as behind
)
select seq
  from follower
 limit %(limit)s

-- name: unblock
-- The parents of these have ended as required. They are first eligible now, or when they are due. They are locked and their
-- state is known (`hold_jobs`): with a condition on the state, the planner might scan all jobs of it.
update queuectl.jobs
   set state = 'pending',
       ready = not held and input.run_at <= %(now)s,
       ready_since = pg_current_xact_id(),
       run_at = input.run_at,
       eligible_at = input.run_at,
       rank = input.rank,
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(changes)s::json) as input (seq bigint, run_at bigint, rank bigint)
 where jobs.seq = input.seq

-- name: orphan
-- A parent can no longer end as required: cancel these. They have never run. They are locked and their state is known
-- (`hold_jobs`): with a condition on the state, the planner might scan all jobs of it.
update queuectl.jobs
   set state = 'cancelled',
       effective_priority = input.effective_priority,
       error = input.error,
       finished_at = greatest(%(now)s, created_at),
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(changes)s::json) as input (seq bigint, error text, effective_priority bigint)
 where jobs.seq = input.seq

-- name: reblock
-- The parent that cancelled these was retried, and so are they. They are locked and their state is known (`hold_jobs`): with a
-- condition on the state, the planner might scan all jobs of it.
update queuectl.jobs
   set state = 'blocked',
       rank = input.rank,
       effective_priority = null,
       error = null,
       finished_at = null,
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(changes)s::json) as input (seq bigint, rank bigint)
 where jobs.seq = input.seq

-- name: wait_again
-- Jobs that are blocked again wait for all of their parents, which are then resolved next.
with again as (
    update queuectl.edges
       set state = 'waiting'
     where child = any(%(children)s)
       and state = 'void'
    returning parent
)
insert into queuectl.undecided (parent)
select distinct parent
  from again

-- name: try_each_key
-- As `take_keys`, without waiting: returns the keys that it could lock. (SQLite has one writer.)
with taken as (
    select id
      from queuectl.locks
     where id = any(
         array(
             select 1024 + (hashtext(key) & 1023)
               from unnest(%(keys)s::text[]) as given (key)
         )
     )
       for update skip locked
)
select key
  from unnest(%(keys)s::text[]) as given (key)
 where 1024 + (hashtext(key) & 1023) in (select id from taken)

-- name: present_jobs
-- Those of these jobs that exist. (SQLite joins them in `undecided`.)
select seq
  from queuectl.jobs
 where seq = any(%(seqs)s)

-- name: parents
-- The parents of some jobs.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from queuectl.jobs as child
  join queuectl.edges on edges.child = child.seq
  join queuectl.jobs as parent on parent.seq = edges.parent
 where child.id = any(%(ids)s)
 order by child.seq, parent.seq
 limit %(limit)s

-- name: children
-- The children of some jobs.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from queuectl.jobs as parent
  join queuectl.edges on edges.parent = parent.seq
  join queuectl.jobs as child on child.seq = edges.child
 where parent.id = any(%(ids)s)
 order by parent.seq, child.seq
 limit %(limit)s
