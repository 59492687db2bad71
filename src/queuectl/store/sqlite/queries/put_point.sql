-- put_point: write down how much happened in a minute or an hour, in the place of what was known of it. Positional, see
-- store/sampling.py.
insert into points (
    span, queue, at, covers_ms, enqueued, started, completed, failed, dead, retried, rescued, waiting, running,
    oldest_ms, run, wait
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (span, queue, at) do update
   set covers_ms = excluded.covers_ms,
       enqueued = excluded.enqueued,
       started = excluded.started,
       completed = excluded.completed,
       failed = excluded.failed,
       dead = excluded.dead,
       retried = excluded.retried,
       rescued = excluded.rescued,
       waiting = excluded.waiting,
       running = excluded.running,
       oldest_ms = excluded.oldest_ms,
       run = excluded.run,
       wait = excluded.wait
