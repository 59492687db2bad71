-- promote: let those in whose time has come. Bounded, so that a million at once do not hold the
-- write lock for seconds; the caller comes back while the bound was reached.
update jobs
   set ready = 1
 where seq in (
    select seq
      from jobs indexed by jobs_due
     where ready = 0
       and held = 0
       and state in ('pending', 'failed')
       and run_at <= :now
     order by run_at
     limit :limit
 )
