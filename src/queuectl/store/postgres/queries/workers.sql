-- workers: everybody that registered and has not left, with what each holds if that is asked: while somebody holds a transaction
-- open, counting it steps over all that each has held since.
select id, host, pid, home, state, slots,
       case
           when %(busy)s then (select count(*) from queuectl.jobs where worker = workers.id and state = 'processing')
           else 0
       end,
       queues, started_at, heartbeat_at, beats,
       jobs_done + coalesce((select sum(jobs) from queuectl.done where worker = workers.id), 0)::bigint, machine, lock
  from queuectl.workers
 order by started_at, id
