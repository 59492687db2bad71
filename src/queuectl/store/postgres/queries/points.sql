-- points: how much happened in a queue in each minute or hour since a moment, oldest first. One in which it did nothing is there,
-- too; one in which it may be among the others is not: nobody knows. How long it covers, the row of all says.
select everything.at, %(queue)s::text, everything.covers_ms, coalesce(of_queue.enqueued, 0), coalesce(of_queue.started, 0),
       coalesce(of_queue.completed, 0), coalesce(of_queue.failed, 0), coalesce(of_queue.dead, 0),
       coalesce(of_queue.retried, 0), coalesce(of_queue.rescued, 0), coalesce(of_queue.waiting, 0),
       coalesce(of_queue.running, 0), of_queue.oldest_ms, coalesce(of_queue.run, '[]'), coalesce(of_queue.wait, '[]')
  from queuectl.points as everything
  left join queuectl.points as of_queue
    on of_queue.span = %(span)s and of_queue.queue = %(queue)s and of_queue.at = everything.at
 where everything.span = %(span)s
   and everything.queue = ''
   and everything.at >= %(since)s
   and (of_queue.at is not null
        or not exists (select 1 from queuectl.points where span = %(span)s and queue = '*' and at = everything.at))
 order by everything.at
