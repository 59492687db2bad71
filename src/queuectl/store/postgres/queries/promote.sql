-- promote: make jobs ready whose time has come. Bounded, so that a million due at once do not take seconds; the caller comes back
-- while the bound was reached. Rows that another worker is promoting are left to it. Returns how many, and the server's clock in
-- milliseconds, for the time that the claim behind it takes.
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
),
promoted as (
    update queuectl.jobs
       set ready = true,
           ready_since = pg_current_xact_id()
      from due
     where jobs.seq = due.seq
    returning 1
)
select count(*), extract(epoch from clock_timestamp())::float8 * 1000
  from promoted
