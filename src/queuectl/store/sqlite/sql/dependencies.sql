-- name: link
-- Store a dependency. Positional: parent, child, need, otherwise, state.
insert into edges (parent, child, need, otherwise, state)
values (?, ?, ?, ?, ?)

-- name: new_parents
-- The parents of new jobs.
select id, seq, state
  from jobs
 where id in (select value from json_each(:ids))

-- name: leave_undecided
-- Mark a parent: its dependencies have to be resolved.
insert or ignore into undecided (parent)
values (?)

-- name: note_undecided
-- Mark all parents with unresolved dependencies, in a store that was filled row by row.
insert or ignore into undecided (parent)
select edges.parent
  from edges
  join jobs on jobs.seq = edges.parent
 where (edges.state = 'waiting' and jobs.state in ('completed', 'dead', 'cancelled'))
    or (edges.state = 'broke' and jobs.state not in ('dead', 'cancelled'))

-- name: undecided
-- A parent with unresolved dependencies.
select undecided.parent, jobs.id, jobs.state
  from undecided
  join jobs on jobs.seq = undecided.parent
 order by undecided.parent
 limit 1

-- name: release_job
-- Release a job that waited for earlier ones of its schedule. It may have been cancelled meanwhile.
update jobs
   set held = 0,
       ready = run_at <= :now,
       updated_at = max(updated_at, :now)
 where id = :id
   and held = 1
   and state in ('pending', 'failed')

-- name: unfinished_jobs
-- Some unfinished jobs of a schedule, and the one that is held until others have ended, which may be among many.
select id, held
  from (
    select id, held
      from jobs indexed by jobs_cron
     where cron = :name
       and state in ('pending', 'processing', 'failed', 'blocked')
     limit :limit
  )
union
select id, held
  from jobs
 where id = :waiting
   and state in ('pending', 'processing', 'failed', 'blocked')
 order by 1

-- name: decidable
-- Dependencies on a parent that are in a state, with the children. With a need: only those.
select edges.need, edges.otherwise,
       jobs.seq, jobs.queue, jobs.priority, jobs.eligible_at, jobs.missed, jobs.run_at,
       jobs.unique_key
  from edges indexed by edges_parent
  join jobs on jobs.seq = edges.child
 where edges.parent = :parent
   and edges.state = :state
   and (:need is null or edges.need = :need)
 limit :limit

-- name: decided
-- All dependencies on this parent are resolved.
delete from undecided
 where parent = ?

-- name: mark_edge
-- Write the state of a dependency. Positional: state, child, parent.
update edges
   set state = ?
 where child = ?
   and parent = ?

-- name: unblock
-- The parents have ended as required. The job is first eligible now, or when it is due.
update jobs
   set state = 'pending',
       ready = held = 0 and :run_at <= :now,
       run_at = :run_at,
       eligible_at = :run_at,
       rank = :rank,
       updated_at = max(:now, created_at)
 where seq = :seq
   and state = 'blocked'

-- name: orphan
-- A parent can no longer end as required: cancel it. It has never run.
update jobs
   set state = 'cancelled',
       effective_priority = :effective_priority,
       error = :error,
       finished_at = max(:now, created_at),
       updated_at = max(:now, created_at)
 where seq = :seq
   and state = 'blocked'

-- name: reblock
-- The parent that cancelled it was retried, and so is the job.
update jobs
   set state = 'blocked',
       rank = :rank,
       effective_priority = null,
       error = null,
       finished_at = null,
       updated_at = max(:now, created_at)
 where seq = :seq
   and state = 'cancelled'

-- name: wait_again
-- A job that is blocked again waits for all of its parents.
update edges
   set state = 'waiting'
 where child = ?
   and state = 'void'
returning parent

-- name: parents
-- The parents of some jobs.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from jobs as child
  join edges on edges.child = child.seq
  join jobs as parent on parent.seq = edges.parent
 where child.id in (select value from json_each(:ids))
 order by child.seq, parent.seq
 limit :limit

-- name: children
-- The children of some jobs.
select parent.id, parent.state, child.id, child.state, edges.need, edges.otherwise, edges.state
  from jobs as parent
  join edges on edges.parent = parent.seq
  join jobs as child on child.seq = edges.child
 where parent.id in (select value from json_each(:ids))
 order by parent.seq, child.seq
 limit :limit
