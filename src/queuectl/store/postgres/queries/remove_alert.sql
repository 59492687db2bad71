-- remove_alert: one of them. Jobs that tell of it stay.
delete from queuectl.alerts
 where name = %(name)s
