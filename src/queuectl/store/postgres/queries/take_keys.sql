-- take_keys: until the end of this transaction nobody else decides about jobs with these unique keys. Before anybody looks who has
-- them: two who find nobody would both come in, and of a time that is asked for (unique_for) no index knows. In one order for
-- all, so that nobody waits for each other. Two keys of one hash share a lock, which costs a moment and is no mistake.
-- (SQLite has one writer.)
select pg_advisory_xact_lock(1366647670, hash)
  from (
    select distinct hashtext(key) as hash
      from unnest(%(keys)s::text[]) as given (key)
     order by hash
  ) as locks
