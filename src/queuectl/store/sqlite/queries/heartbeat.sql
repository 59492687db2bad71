-- heartbeat: a worker says that it lives. `beats` is what others watch: it needs no clock.
update workers
   set heartbeat_at = max(:now, started_at),
       beats = beats + 1,
       slots = :slots,
       state = :state
 where id = :id
   and state <> 'lost'
