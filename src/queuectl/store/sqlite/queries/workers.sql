-- workers: everybody that registered and has not left, with what each holds.
select id, host, pid, home, state, slots,
       (select count(*) from jobs indexed by jobs_running where worker = workers.id and state = 'processing'),
       queues, started_at, heartbeat_at, beats, jobs_done, machine, lock
  from workers
 order by started_at, id
