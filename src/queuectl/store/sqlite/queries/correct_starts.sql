-- correct_starts: the clock was set back. What lies ahead counts as of now: a queue must not wait until the clock is there again.
update starts
   set at = :now
 where queue = :queue
   and at > :now
