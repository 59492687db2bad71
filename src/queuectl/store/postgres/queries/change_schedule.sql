-- change_schedule: all of it but the name.
update queuectl.schedules
   set expression = %(expression)s,
       tz = %(tz)s,
       anchor_at = %(anchor_at)s,
       fields = %(fields)s,
       overlap = %(overlap)s,
       catch_up = %(catch_up)s,
       jitter_ms = %(jitter_ms)s,
       until_at = %(until_at)s,
       paused = %(paused)s,
       created_at = %(created_at)s,
       updated_at = %(updated_at)s,
       tick_at = %(tick_at)s,
       start_at = %(start_at)s,
       look_at = %(look_at)s,
       last_at = %(last_at)s,
       waiting = %(waiting)s
 where name = %(name)s
