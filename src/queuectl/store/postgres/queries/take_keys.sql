-- take_keys: until the end of this transaction no other one decides about jobs with these unique keys. Taken before the holders of
-- the keys are looked up: two transactions that find none would both add their job, and no index covers `unique_for`. In the order
-- of the IDs, so that two transactions do not wait for each other. Keys of one hash share a row, which costs a short wait at
-- most. (SQLite has one writer.)
select id
  from queuectl.locks
 where id = any(
     array(
         select 1024 + (hashtext(key) & 1023)
           from unnest(%(keys)s::text[]) as given (key)
     )
 )
 order by id
   for update
