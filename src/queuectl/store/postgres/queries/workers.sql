-- workers: everybody that registered and has not left, with what each holds.
select id, host, pid, home, state, slots,
       (select count(*) from queuectl.jobs where worker = workers.id and state = 'processing'),
       queues, started_at, heartbeat_at, beats,
       jobs_done + coalesce((select sum(jobs) from queuectl.done where worker = workers.id), 0)::bigint, machine, lock
  from queuectl.workers
 order by started_at, id
