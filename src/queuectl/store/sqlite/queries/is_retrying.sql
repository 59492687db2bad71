-- is_retrying: waits a retry of this queue that nobody holds back?
select exists (
    select 1
      from jobs indexed by jobs_state
     where state = 'failed'
       and state <> 'processing'
       and held = 0
       and queue = :queue
)
