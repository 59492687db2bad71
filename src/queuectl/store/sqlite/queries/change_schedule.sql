-- change_schedule: all of it but the name.
update schedules
   set expression = :expression,
       tz = :tz,
       anchor_at = :anchor_at,
       fields = :fields,
       overlap = :overlap,
       catch_up = :catch_up,
       jitter_ms = :jitter_ms,
       until_at = :until_at,
       paused = :paused,
       created_at = :created_at,
       updated_at = :updated_at,
       tick_at = :tick_at,
       start_at = :start_at,
       look_at = :look_at,
       last_at = :last_at,
       waiting = :waiting
 where name = :name
