-- tables: of those that a store has, which are there, and which of them this role may read and write.
select name,
       to_regclass('queuectl.' || name) is not null,
       coalesce(
           has_table_privilege(to_regclass('queuectl.' || name), 'select')
           and has_table_privilege(to_regclass('queuectl.' || name), 'insert')
           and has_table_privilege(to_regclass('queuectl.' || name), 'update')
           and has_table_privilege(to_regclass('queuectl.' || name), 'delete'),
           false
       )
  from unnest(%(names)s::text[]) as wanted (name)
 order by name
