-- schedule: one of them.
select name, expression, tz, anchor_at, fields, overlap, catch_up, jitter_ms, until_at, paused, created_at, updated_at, tick_at,
       start_at, look_at, last_at, waiting
  from schedules
 where name = :name
