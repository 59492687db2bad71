-- config: all stored settings.
select key, value
  from queuectl.config
