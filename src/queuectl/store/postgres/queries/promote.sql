-- promote: let those in whose time has come. Bounded, so that a million at once do not take seconds; the caller comes back
-- while the bound was reached. Those whom another is just letting in are left to it.
with due as (
    select seq
      from queuectl.jobs
     where not ready
       and not held
       and state in ('pending', 'failed')
       and run_at <= %(now)s
     order by run_at
     limit %(limit)s
       for update skip locked
)
update queuectl.jobs
   set ready = true,
       ready_since = pg_current_xact_id()
  from due
 where jobs.seq = due.seq
