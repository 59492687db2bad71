-- trim_ticks: keep the latest of a schedule.
delete from queuectl.ticks
 where schedule = %(schedule)s
   and at < (
    select at
      from queuectl.ticks
     where schedule = %(schedule)s
     order by at desc
     limit 1
    offset %(keep)s
   )
