-- tables: of those that a store has, which are there, and what this role needs to do with them and may not.
-- (SQLite: pragma integrity_check, and the rights of a file.)
select name,
       to_regclass('queuectl.' || name) is not null,
       array(
           select needed
             from unnest(string_to_array(rights, ' ')) as needed
            where not case needed
                      when 'usage' then has_sequence_privilege(to_regclass('queuectl.' || name), needed)
                      else has_table_privilege(to_regclass('queuectl.' || name), needed)
                  end
       )
  from unnest(%(names)s::text[], %(rights)s::text[]) as wanted (name, rights)
 order by name
