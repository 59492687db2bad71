-- retire: forget a worker.
delete from workers
 where id = :id
