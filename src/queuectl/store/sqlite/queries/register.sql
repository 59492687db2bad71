-- register: a worker begins. Replaces a row of the same name, whose worker is known to be gone.
insert or replace into workers (id, host, machine, lock, pid, home, state, slots, queues, started_at, heartbeat_at)
values (:id, :host, :machine, :lock, :pid, :home, 'running', :slots, :queues, :now, :now)
