-- try_each_key: as take_keys.sql, but nobody is waited for: which of these keys it could take. Two keys of one hash share a lock, which
-- one session may take twice. (SQLite has one writer.)
select key
  from unnest(%(keys)s::text[]) as given (key)
 where pg_try_advisory_xact_lock(1366647670, hashtext(key))
