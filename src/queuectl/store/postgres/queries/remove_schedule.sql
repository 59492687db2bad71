-- remove_schedule: one of them, with what was decided about its ticks.
delete from queuectl.schedules
 where name = %(name)s
