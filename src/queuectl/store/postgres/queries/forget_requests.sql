-- forget_requests: remove what was answered too long ago.
delete from queuectl.requests
 where at <= %(before)s
