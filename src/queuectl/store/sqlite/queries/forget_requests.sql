-- forget_requests: remove what was answered too long ago, some of it at a time.
delete from requests
 where key in (
    select key
      from requests
     where at <= :before
     order by at
     limit :limit
 )
