-- move_audit_base: up to here the chain is forgotten. Followed by forget_audit.sql.
update queuectl.audit_ends set base = %(seq)s, base_hash = %(hash)s
