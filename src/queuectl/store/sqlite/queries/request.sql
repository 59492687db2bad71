-- request: what was answered to a request of this key, unless it was too long ago.
select digest, answer
  from requests
 where key = :key
   and at > :before
