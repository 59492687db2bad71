-- stop_order: what a worker was asked to do, if anything. No row: it was declared lost.
select stop
  from workers
 where id = :id
   and state <> 'lost'
