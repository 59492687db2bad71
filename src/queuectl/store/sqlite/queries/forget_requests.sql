-- forget_requests: remove what was answered too long ago.
delete from requests
 where at <= :before
