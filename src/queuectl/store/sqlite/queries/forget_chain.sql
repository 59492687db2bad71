-- forget_chain: all of the audit may go: that of another store takes its place.
update audit_ends set base = head, base_hash = head_hash
