-- forget_starts: a queue has no rate any more.
delete from queuectl.starts
 where queue = %(queue)s
