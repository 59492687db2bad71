-- audit_ends: where the chain of the audit begins and ends.
select base, base_hash, head, head_hash from queuectl.audit_ends
