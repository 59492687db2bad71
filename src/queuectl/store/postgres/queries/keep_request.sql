-- keep_request: what was answered to a request whose key is ours, see take_request.sql.
update queuectl.requests
   set answer = %(answer)s
 where key = %(key)s
