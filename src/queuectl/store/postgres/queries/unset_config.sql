-- unset_config: forget one setting.
delete from queuectl.config
 where key = %(key)s
