-- unset_config: forget one setting.
delete from config
 where key = :key
