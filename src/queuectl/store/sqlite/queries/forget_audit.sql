-- forget_audit: remove what the chain does not begin with any more.
delete from audit where seq <= (select base from audit_ends)
