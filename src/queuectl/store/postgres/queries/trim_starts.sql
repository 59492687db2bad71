-- trim_starts: of a queue with a rate, forget the starts that no later one has to keep its distance from.
delete from queuectl.starts
 where queue = %(queue)s
   and number <= %(number)s
