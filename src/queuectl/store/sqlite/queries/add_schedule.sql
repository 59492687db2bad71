-- add_schedule: a new one; none if the name is taken.
insert into schedules (
    name, expression, tz, anchor_at, fields, overlap, catch_up, jitter_ms, until_at, paused, created_at, updated_at, tick_at,
    start_at, look_at, last_at, waiting
)
values (
    :name, :expression, :tz, :anchor_at, :fields, :overlap, :catch_up, :jitter_ms, :until_at,
    :paused, :created_at, :updated_at, :tick_at, :start_at, :look_at, :last_at, :waiting
)
on conflict do nothing
