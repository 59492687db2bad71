-- set_config: store one setting.
insert into queuectl.config (key, value)
values (%(key)s, %(value)s)
on conflict (key) do update set value = %(value)s
