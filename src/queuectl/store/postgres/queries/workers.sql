-- workers: everybody that registered and has not left, with how many of its slots are taken if that is asked (by calls of
-- webhooks only if it was given their queue): while somebody holds a transaction
-- open, counting it steps over all that each has held since.
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
