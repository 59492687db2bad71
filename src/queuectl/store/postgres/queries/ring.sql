-- ring: wake the workers. In a transaction of its own after the commit of what there is to see, and without waiting for the disk:
-- all that notify commit one after the other, and must not hold that line while something reaches the disk.
-- (SQLite: bells.sql, and a byte into the pipe of each.)
select set_config('synchronous_commit', 'off', true),
       pg_notify('queuectl', '')
