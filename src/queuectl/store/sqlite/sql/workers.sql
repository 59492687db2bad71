-- name: register
-- A worker begins. Replaces a row of the same name, whose worker is known to be gone.
insert or replace into workers (id, host, machine, lock, pid, home, state, slots, queues, started_at, heartbeat_at)
values (:id, :host, :machine, :lock, :pid, :home, 'running', :slots, :queues, :now, :now)

-- name: heartbeat
-- A worker says that it lives. `beats` is what others watch: it needs no clock.
update workers
   set heartbeat_at = max(:now, started_at),
       beats = beats + 1,
       slots = :slots,
       state = :state
 where id = :id
   and state <> 'lost'

-- name: workers
-- Everybody that registered and has not left, with how many of its slots are taken if that is asked: by calls of webhooks
-- only if it was given their queue.
select id, host, pid, home, state, slots,
       iif(
           :busy,
           (
               select count(*)
                 from jobs indexed by jobs_running
                where worker = workers.id
                  and state = 'processing'
                  and (queue <> 'queuectl.webhooks' or instr(coalesce(workers.queues, ''), '"queuectl.webhooks"'))
           ),
           0
       ),
       queues, started_at, heartbeat_at, beats, jobs_done, machine, lock
  from workers
 order by started_at, id

-- name: worker_state
-- Whether a worker is known, and what it is doing. (PostgreSQL looks within `adopt`.)
select state
  from workers
 where id = ?

-- name: fence
-- Ignore all writes of this worker until it registers again. Only the process that was meant: a heartbeat that it
-- gave meanwhile, or another worker of its name, is left alone.
update workers
   set state = 'lost'
 where id = :id
   and (:started_at is null or started_at = :started_at)
   and (:beats is null or beats = :beats)

-- name: adopt
-- What a worker has running passes to another.
update jobs
   set worker = :by
 where worker = :worker
   and state = 'processing'
   and token in (select value from json_each(:tokens))
returning token

-- name: forget
-- Remove a worker whose jobs were rescued, unless it has registered again.
delete from workers
 where id = :id
   and state = 'lost'
   and not exists (select 1 from jobs indexed by jobs_running where worker = :id and state = 'processing')

-- name: retire
-- Remove a worker, unless it holds a job: a job of an unregistered worker would never be rescued.
delete from workers
 where id = :id
   and not exists (select 1 from jobs indexed by jobs_running where worker = :id and state = 'processing')

-- name: worker_pipes
-- Where to ring so that waiting workers wake. (PostgreSQL: `ring`, which reaches all who listen.)
select home, id
  from workers
