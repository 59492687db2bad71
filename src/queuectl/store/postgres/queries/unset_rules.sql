-- unset_rules: nothing is said about a queue any more.
delete from queuectl.queues
 where name = %(name)s
