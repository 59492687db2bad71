-- name: hold_schedule
-- One schedule, locked for a input. (SQLite: the write lock.)
select name, expression, tz, anchor_at, fields, overlap, catch_up, jitter_ms, until_at, paused, created_at, updated_at, next_run_at,
       start_at, check_at, last_at, waiting
  from queuectl.schedules
 where name = %(name)s
   for update
