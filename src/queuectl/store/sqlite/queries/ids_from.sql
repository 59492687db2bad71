-- ids_from: ids that begin with a text, an exact match first. The upper bound keeps it inside the index on id.
select id
  from jobs
 where id >= :ref
   and id < :ref || char(1114111)
 order by id
 limit :limit
