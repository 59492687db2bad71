-- register: a worker begins. Replaces a row of the same name, whose worker is known to be gone.
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
