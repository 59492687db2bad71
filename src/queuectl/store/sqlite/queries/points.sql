-- points: how much happened in a queue in each minute or hour since a moment, oldest first. One in which it did nothing is there,
-- too; one in which it may be among the others is not: nobody knows. How long it covers, the row of all says.
select everything.at, :queue, everything.covers_ms, coalesce(of_queue.enqueued, 0), coalesce(of_queue.started, 0),
       coalesce(of_queue.completed, 0), coalesce(of_queue.failed, 0), coalesce(of_queue.dead, 0),
       coalesce(of_queue.retried, 0), coalesce(of_queue.rescued, 0), coalesce(of_queue.waiting, 0),
       coalesce(of_queue.running, 0), of_queue.oldest_ms, coalesce(of_queue.run, '[]'), coalesce(of_queue.wait, '[]')
  from points as everything
  left join points as of_queue
    on of_queue.span = :span and of_queue.queue = :queue and of_queue.at = everything.at
 where everything.span = :span
   and everything.queue = ''
   and everything.at >= :since
   and (of_queue.at is not null
        or not exists (select 1 from points where span = :span and queue = '*' and at = everything.at))
 order by everything.at
