-- movable: the jobs of a queue that wait, all or those of some ids. (PostgreSQL finds them within move.sql.)
select seq, id, state, key
  from jobs
 where queue = :queue
   and state in ('blocked', 'pending', 'failed')
   and state <> 'processing'
   and (:ids is null or id in (select value from json_each(:ids)))
 order by seq
