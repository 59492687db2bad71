-- move_audit_base: up to here the chain is forgotten. Followed by forget_audit.sql.
update audit_ends set base = :seq, base_hash = :hash
