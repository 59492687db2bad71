-- try_each_key: as take_keys.sql, but without waiting: which of these keys it could take. (SQLite has one writer.)
with taken as (
    select id
      from queuectl.locks
     where id = any(
         array(
             select 1024 + (hashtext(key) & 1023)
               from unnest(%(keys)s::text[]) as given (key)
         )
     )
       for update skip locked
)
select key
  from unnest(%(keys)s::text[]) as given (key)
 where 1024 + (hashtext(key) & 1023) in (select id from taken)
