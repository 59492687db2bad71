-- move_audit_head: the record that was just added is the newest. (PostgreSQL does so within add_audit.sql.)
insert into audit_ends (one, base, base_hash, head, head_hash)
values (1, 0, :nothing, :seq, :hash)
    on conflict (one) do update set head = excluded.head, head_hash = excluded.head_hash
