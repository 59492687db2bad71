-- add_alert: a new one; none if the name is taken.
insert into queuectl.alerts (
    name, kind, threshold, within_ms, queue, for_ms, repeat_ms, url, command, cwd, created_at, firing, changed_at,
    since_at, told_at, seen_at, checked_at, value, untold, tried_at, turn
)
values (
    %(name)s, %(kind)s, %(threshold)s, %(within_ms)s, %(queue)s, %(for_ms)s, %(repeat_ms)s, %(url)s, %(command)s,
    %(cwd)s, %(created_ms)s, %(is_firing)s, %(changed_ms)s, %(since_ms)s, %(told_ms)s, %(seen_ms)s, %(checked_ms)s,
    %(value)s, %(untold)s, %(tried_ms)s, %(turn)s
)
on conflict do nothing
