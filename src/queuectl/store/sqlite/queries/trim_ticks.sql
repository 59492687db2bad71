-- trim_ticks: keep the latest of a schedule.
delete from ticks
 where schedule = :schedule
   and at < (
    select at
      from ticks
     where schedule = :schedule
     order by at desc
     limit 1
    offset :keep
   )
