-- name: link
-- Let jobs wait for others, as a stream of rows.
copy queuectl.edges (parent, child, need, otherwise, state) from stdin

-- name: new_parents
-- The parents of new jobs. Until the end of this transaction they are not removed; that they end is
-- not held up, see the table `undecided`.
select id, seq, state
  from queuectl.jobs
 where id = any(%(ids)s::text[])
 order by id
   for key share

-- name: leave_undecided
-- Resolve the children of these parents: one may have ended before it could see its new child.
copy queuectl.undecided (parent) from stdin

-- name: note_undecided
-- Find all parents whose children have not been told, in a store that was filled row by row.
insert into queuectl.undecided (parent)
select distinct edges.parent
  from queuectl.edges
  join queuectl.jobs on jobs.seq = edges.parent
 where (edges.state = 'waiting' and jobs.state in ('completed', 'dead', 'cancelled'))
    or (edges.state = 'broke' and jobs.state not in ('dead', 'cancelled'))

-- name: undecided
-- Parents some of whose children may not have been told what became of them. Those that another is just seeing to are
-- left to it.
select ctid::text, parent
  from queuectl.undecided
 limit %(limit)s
   for update skip locked

-- name: free_waiting
-- A job that waited for earlier ones of its schedule is released. It may have been cancelled meanwhile.
update queuectl.jobs
   set held = false,
       ready = run_at <= %(now)s,
       ready_since = pg_current_xact_id(),
       updated_at = greatest(updated_at, %(now)s)
 where id = %(id)s
   and held
   and state in ('pending', 'failed')

-- name: unended
-- Some jobs of a schedule that have not ended, and the one that waits for others, which may be among many.
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
-- Edges that are not what they should be, by the state of their parents: those that wait for one that has ended, and
-- those that broke by one that would not break them now. Each kind by the index.
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
-- All children of these parents have been told. By the rows that were locked: one that was added since says that there
-- may be more.
delete from queuectl.undecided
 where ctid = any(%(rows)s::tid[])

-- name: told
-- The triggers have noted jobs in this transaction whose children have been told already. Those with an edge that is not what
-- it should be (see `decidable`) stay; so does what other transactions have noted. The edges are looked up for each row, by the
-- index, whatever the planner takes for the number of rows. (SQLite has one row a parent.)
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
-- What has become of edges. (SQLite writes one by one, as in `settle`.)
update queuectl.edges
   set state = told.state
  from json_to_recordset(%(told)s::json) as told (child bigint, parent bigint, state text)
 where edges.child = told.child
   and edges.parent = told.parent

-- name: open_edges
-- The edges of some jobs, which are locked, that may still change. (SQLite tells one child at a time: `is_waiting`.)
select parent, child, need, otherwise, state
  from queuectl.edges
 where child = any(%(children)s)
   and state in ('waiting', 'broke')
 order by child, parent

-- name: followers
-- Jobs that meet the same fate as some that have changed, one behind the other: what waits for a cancelled job and needs
-- it is cancelled, and what a job cancelled that is blocked again is blocked again. Nearest first, with those themselves. By the index
-- (`limit`: or the planner may read all edges). (SQLite tells one parent after the other in one transaction.)
with recursive follower (seq, fate) as (
    select told.seq, told.fate
      from unnest(%(seqs)s::bigint[], %(fates)s::text[]) as told (seq, fate)
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
-- The parents of these have ended as they need. They could first run now, or when their own time comes.
-- They are locked, and what they are is known (`hold_jobs`): were the state named too, the planner might go through all of it.
update queuectl.jobs
   set state = 'pending',
       ready = not held and told.run_at <= %(now)s,
       ready_since = pg_current_xact_id(),
       run_at = told.run_at,
       eligible_at = told.run_at,
       rank = told.rank,
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(told)s::json) as told (seq bigint, run_at bigint, rank bigint)
 where jobs.seq = told.seq

-- name: orphan
-- A parent can no longer end as required: cancel these. They have never run.
-- They are locked, and what they are is known (`hold_jobs`): were the state named too, the planner might go through all of it.
update queuectl.jobs
   set state = 'cancelled',
       effective_priority = told.effective_priority,
       error = told.error,
       finished_at = greatest(%(now)s, created_at),
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(told)s::json) as told (seq bigint, error text, effective_priority bigint)
 where jobs.seq = told.seq

-- name: reblock
-- The parent that cancelled these was retried, and so are they.
-- They are locked, and what they are is known (`hold_jobs`): were the state named too, the planner might go through all of it.
update queuectl.jobs
   set state = 'blocked',
       rank = told.rank,
       effective_priority = null,
       error = null,
       finished_at = null,
       updated_at = greatest(%(now)s, created_at)
  from json_to_recordset(%(told)s::json) as told (seq bigint, rank bigint)
 where jobs.seq = told.seq

-- name: wait_again
-- Jobs that are blocked again wait for all of their parents that they did not have to wait for meanwhile; these are
-- looked at next.
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
-- As `take_keys`, but without waiting: which of these keys it could take. (SQLite has one writer.)
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
-- Which of these jobs there are. (SQLite joins them in `undecided`.)
select seq
  from queuectl.jobs
 where seq = any(%(seqs)s)

-- name: parents
-- What some jobs wait for, or have waited for.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from queuectl.jobs as child
  join queuectl.edges on edges.child = child.seq
  join queuectl.jobs as parent on parent.seq = edges.parent
 where child.id = any(%(ids)s)
 order by child.seq, parent.seq
 limit %(limit)s

-- name: children
-- What waits for some jobs, or has.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from queuectl.jobs as parent
  join queuectl.edges on edges.parent = parent.seq
  join queuectl.jobs as child on child.seq = edges.child
 where parent.id = any(%(ids)s)
 order by parent.seq, child.seq
 limit %(limit)s
