-- stop_order: what a worker was asked to do, if anything. No row: it was declared lost.
select stop
  from queuectl.workers
 where id = %(id)s
   and state <> 'lost'
