-- points_of: all that is known of one minute or hour.
select at, queue, covers_ms, enqueued, started, completed, failed, dead, retried, rescued, waiting, running, oldest_ms, run, wait
  from queuectl.points
 where span = %(span)s
   and at = %(at)s
