-- take_keys_of: as take_keys.sql, the keys that some jobs have. Before their rows are locked, in the order that enqueue has.
-- (SQLite has one writer.)
select id
  from queuectl.locks
 where id = any(
     array(
         select 1024 + (hashtext(unique_key) & 1023)
           from queuectl.jobs
          where id = any(%(ids)s)
            and unique_key is not null
     )
 )
 order by id
   for update
