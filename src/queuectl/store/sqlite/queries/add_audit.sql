-- add_audit: the next record of the chain. Followed by move_audit_head.sql.
insert into audit (seq, at, record, hash) values (:seq, :at, :record, :hash)
