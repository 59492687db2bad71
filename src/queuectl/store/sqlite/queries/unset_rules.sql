-- unset_rules: nothing is said about a queue any more.
delete from queues
 where name = :name
