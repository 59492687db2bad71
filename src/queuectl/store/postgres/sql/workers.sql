-- name: register
-- Register a worker. Replaces the row of a dead worker with the same name.
with done as (
    delete from queuectl.done
     where worker = %(id)s
)
insert into queuectl.workers (id, host, machine, lock, pid, home, state, slots, queues, started_at, heartbeat_at)
values (%(id)s, %(host)s, %(machine)s, %(lock)s, %(pid)s, %(home)s, 'running', %(slots)s, %(queues)s, %(now)s, %(now)s)
on conflict (id) do update
   set host = excluded.host,
       machine = excluded.machine,
       lock = excluded.lock,
       pid = excluded.pid,
       home = excluded.home,
       state = excluded.state,
       stop = null,
       slots = excluded.slots,
       queues = excluded.queues,
       started_at = excluded.started_at,
       heartbeat_at = excluded.heartbeat_at,
       beats = 0,
       jobs_done = 0

-- name: heartbeat
-- Record a heartbeat. `beats` is compared by other processes: it needs no clock. Also adds up the completed jobs.
with done as (
    delete from queuectl.done
     where worker = %(id)s
    returning jobs
)
update queuectl.workers
   set heartbeat_at = greatest(%(now)s, started_at),
       beats = beats + 1,
       jobs_done = jobs_done + coalesce((select sum(jobs) from done), 0),
       slots = %(slots)s,
       state = %(state)s
 where id = %(id)s
   and state <> 'lost'

-- name: workers
-- The registered workers; with `busy`, how many of their slots are in use (webhook deliveries count only for a worker that
-- serves their queue): while another session holds a transaction open, counting them steps over all jobs that each has held
-- since.
select id, host, pid, home, state, slots,
       case
           when %(busy)s then (
               select count(*)
                 from queuectl.jobs
                where worker = workers.id
                  and state = 'processing'
                  and (queue <> 'queuectl.webhooks' or position('"queuectl.webhooks"' in coalesce(workers.queues, '')) > 0)
           )
           else 0
       end,
       queues, started_at, heartbeat_at, beats,
       jobs_done + coalesce((select sum(jobs) from queuectl.done where worker = workers.id), 0)::bigint, machine, lock
  from queuectl.workers
 order by started_at, id

-- name: hold_worker
-- For writes of the worker itself. Until the end of this transaction it is not rescued or removed (`take_worker`): jobs that it
-- claims meanwhile would belong to a worker that is not registered. (SQLite has one writer.) Also returns which transactions
-- have ended: the next claim checks later ones for new jobs; and whether any queue is paused or limited, or a job limits its
-- own key: then a claim has to choose (see `claim`).
select pg_current_snapshot()::text,
       exists (
           select 1
             from queuectl.queues
            where paused or concurrency is not null or rate_starts is not null or per_key is not null
       )
       or exists (
           select 1
             from queuectl.jobs
            where places is not null
              and state in ('blocked', 'pending', 'processing', 'failed')
       ),
       (
           select id
             from queuectl.locks
            where id = hashtext(%(worker)s) & 1023
              for key share
       )

-- name: take_worker
-- For writes of other processes about a worker. Waits for its current transaction, see `hold_worker`. (SQLite has one writer.)
select id
  from queuectl.locks
 where id = hashtext(%(worker)s) & 1023
   for update

-- name: fence
-- Ignore all writes of this worker until it registers again. Only this process: not if it has sent another heartbeat, or if
-- another process has its name.
update queuectl.workers
   set state = 'lost'
 where id = %(id)s
   and (%(started_at)s::bigint is null or started_at = %(started_at)s)
   and (%(beats)s::bigint is null or beats = %(beats)s)

-- name: end_transactions
-- Roll back the transactions of a worker and end their sessions. Only of this process, as in `fence`: one that has sent another
-- heartbeat continues. A session has that name only within a transaction, see `enter`. Waits for a second until they have
-- ended. Needs no privilege where all workers have one role. (SQLite has no sessions.)
select pg_terminate_backend(pid, 1000)
  from pg_stat_activity
 where datname = current_database()
   and application_name = %(name)s
   and pid <> pg_backend_pid()
   and exists (
       select 1
         from queuectl.workers
        where id = %(id)s
          and (%(started_at)s::bigint is null or started_at = %(started_at)s)
          and (%(beats)s::bigint is null or beats = %(beats)s)
   )

-- name: adopt
-- Transfer the running jobs of a worker to another one, if that one is registered.
update queuectl.jobs
   set worker = %(by)s
 where worker = %(worker)s
   and state = 'processing'
   and token = any(%(tokens)s)
   and exists (select 1 from queuectl.workers where id = %(by)s and state <> 'lost')
returning token

-- name: forget
-- Remove a worker whose jobs were rescued, unless it has registered again.
delete from queuectl.workers
 where id = %(id)s
   and state = 'lost'
   and not exists (select 1 from queuectl.jobs where worker = %(id)s and state = 'processing')

-- name: retire
-- Remove a worker, unless it holds a job: a job of an unregistered worker would never be rescued.
delete from queuectl.workers
 where id = %(id)s
   and not exists (select 1 from queuectl.jobs where worker = %(id)s and state = 'processing')

-- name: notify
-- Wake the workers. In a transaction of its own after the commit, and without waiting for the disk: transactions that notify
-- commit one after the other, and must not hold that lock while data is written to the disk. (SQLite: `worker_pipes`, and a
-- byte into each pipe.)
select set_config('synchronous_commit', 'off', true),
       pg_notify('queuectl', '')
