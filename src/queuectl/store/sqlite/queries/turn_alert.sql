-- turn_alert: how it stands, unless somebody has written since the one who decided has looked.
update alerts
   set firing = :is_firing,
       changed_at = :changed_ms,
       since_at = :since_ms,
       told_at = :told_ms,
       seen_at = :seen_ms,
       checked_at = :checked_ms,
       value = :value,
       untold = :untold,
       tried_at = :tried_ms,
       turn = turn + 1
 where name = :name
   and turn = :turn
   and created_at = :created_ms
