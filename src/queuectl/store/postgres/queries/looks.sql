-- looks: which schedules somebody has to look at, and when, the first one first.
select name, look_at
  from queuectl.schedules
 where look_at is not null
 order by look_at, name
 limit %(limit)s
