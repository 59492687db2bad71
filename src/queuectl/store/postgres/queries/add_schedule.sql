-- add_schedule: a new one; none if the name is taken.
insert into queuectl.schedules (
    name, expression, tz, anchor_at, fields, overlap, catch_up, jitter_ms, until_at, paused, created_at, updated_at, tick_at,
    start_at, look_at, last_at, waiting
)
values (
    %(name)s, %(expression)s, %(tz)s, %(anchor_at)s, %(fields)s, %(overlap)s, %(catch_up)s, %(jitter_ms)s, %(until_at)s,
    %(paused)s, %(created_at)s, %(updated_at)s, %(tick_at)s, %(start_at)s, %(look_at)s, %(last_at)s, %(waiting)s
)
on conflict do nothing
