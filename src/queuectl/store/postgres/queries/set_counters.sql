-- set_counters: note what has happened in a queue by now. Positional: the columns of counters.sql.
insert into queuectl.counters (queue, enqueued, started, completed, failed, dead, retried, rescued)
values (%s, %s, %s, %s, %s, %s, %s, %s)
on conflict (queue) do update
   set enqueued = excluded.enqueued,
       started = excluded.started,
       completed = excluded.completed,
       failed = excluded.failed,
       dead = excluded.dead,
       retried = excluded.retried,
       rescued = excluded.rescued
