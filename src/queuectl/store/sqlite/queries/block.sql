-- block: a new job that waits for others, or could have.
update jobs
   set state = iif(:is_blocked, 'blocked', state),
       ready = iif(:is_blocked, 0, ready),
       depends_on = :said
 where seq = :seq
