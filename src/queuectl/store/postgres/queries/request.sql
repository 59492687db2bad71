-- request: what was answered to a request of this key.
select digest, answer
  from queuectl.requests
 where key = %(key)s
