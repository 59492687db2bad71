-- workers: everybody that registered and has not left, with what each holds if that is asked.
select id, host, pid, home, state, slots,
       iif(
           :busy,
           (select count(*) from jobs indexed by jobs_running where worker = workers.id and state = 'processing'),
           0
       ),
       queues, started_at, heartbeat_at, beats, jobs_done, machine, lock
  from workers
 order by started_at, id
