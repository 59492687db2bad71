-- duplicate: the first of some ids that is taken. (SQLite looks up one id after the other once the schema has refused them.)
select given.id
  from unnest(%(ids)s::text[]) with ordinality as given (id, place)
  join queuectl.jobs on jobs.id = given.id
 order by given.place
 limit 1
