-- correct_starts: the clock was set back. What lies ahead counts as of now: a queue must not wait until the clock is there again.
update queuectl.starts
   set at = %(now)s
 where queue = %(queue)s
   and at > %(now)s
