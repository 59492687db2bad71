-- forget_requests: remove what was answered too long ago, some of it at a time.
delete from queuectl.requests
 where key in (
    select key
      from queuectl.requests
     where at <= %(before)s
     order by at
     limit %(limit)s
 )
