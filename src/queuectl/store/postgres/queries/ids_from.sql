-- ids_from: ids that begin with a text, an exact match first. The upper bound keeps it inside the index on id.
select id
  from queuectl.jobs
 where id >= %(ref)s
   and id < %(ref)s || chr(1114111)
 order by id
 limit %(limit)s
