-- remove_alert: one of them. Jobs that tell of it stay.
delete from alerts
 where name = :name
