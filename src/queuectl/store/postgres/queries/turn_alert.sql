-- turn_alert: how it stands, unless somebody has written since the one who decided has looked.
update queuectl.alerts
   set firing = %(is_firing)s,
       changed_at = %(changed_ms)s,
       since_at = %(since_ms)s,
       told_at = %(told_ms)s,
       seen_at = %(seen_ms)s,
       checked_at = %(checked_ms)s,
       value = %(value)s,
       untold = %(untold)s,
       tried_at = %(tried_ms)s,
       turn = turn + 1
 where name = %(name)s
   and turn = %(turn)s
   and created_at = %(created_ms)s
