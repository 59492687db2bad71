-- add_alert: a new one; none if the name is taken.
insert into alerts (
    name, kind, threshold, within_ms, queue, for_ms, repeat_ms, url, command, cwd, created_at, firing, changed_at,
    since_at, told_at, seen_at, checked_at, value, untold, tried_at, turn
)
values (
    :name, :kind, :threshold, :within_ms, :queue, :for_ms, :repeat_ms, :url, :command, :cwd, :created_ms, :is_firing,
    :changed_ms, :since_ms, :told_ms, :seen_ms, :checked_ms, :value, :untold, :tried_ms, :turn
)
on conflict do nothing
