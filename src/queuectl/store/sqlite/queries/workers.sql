-- workers: everybody that registered and has not left, with how many of its slots are taken if that is asked: by calls of webhooks
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
