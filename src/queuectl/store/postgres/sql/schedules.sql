-- name: hold_schedule
-- One of them, locked for a change. (In SQLite the write lock does that.)
select name, expression, tz, anchor_at, fields, overlap, catch_up, jitter_ms, until_at, paused, created_at, updated_at, tick_at,
       start_at, look_at, last_at, waiting
  from queuectl.schedules
 where name = %(name)s
   for update
