-- name: register
-- Register a worker. Replaces the row of a dead worker with the same name.
insert or replace into workers (id, host, machine, lock, pid, home, state, slots, queues, started_at, heartbeat_at)
values (:id, :host, :machine, :lock, :pid, :home, 'running', :slots, :queues, :now, :now)

-- name: heartbeat
-- Record a heartbeat. `beats` is compared by other processes: it needs no clock.
update workers
   set heartbeat_at = max(:now, started_at),
       beats = beats + 1,
       slots = :slots,
       state = :state
 where id = :id
   and state <> 'lost'

-- name: workers
-- The registered workers; with `busy`, how many of their slots are in use. Webhook deliveries count only for a worker that
-- serves their queue.
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
-- The state of a worker, if it is registered. (PostgreSQL: within `adopt`.)
select state
  from workers
 where id = ?

-- name: fence
-- Ignore all writes of this worker until it registers again. Only this process: not if it has sent another heartbeat, or if
-- another process has its name.
update workers
   set state = 'lost'
 where id = :id
   and (:started_at is null or started_at = :started_at)
   and (:beats is null or beats = :beats)

-- name: adopt
-- Transfer the running jobs of a worker to another one.
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
-- The wake-up pipes of the workers. (PostgreSQL: `notify`.)
select home, id
  from workers
