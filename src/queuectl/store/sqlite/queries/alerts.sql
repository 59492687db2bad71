-- alerts: all of them, by name.
select name, kind, threshold, within_ms, queue, for_ms, repeat_ms, url, command, cwd, created_at, firing, changed_at,
       since_at, told_at, seen_at, checked_at, value, untold, tried_at, turn
  from alerts
 order by name
