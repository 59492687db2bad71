-- forget_audit: remove what the chain does not begin with any more.
delete from queuectl.audit where seq <= (select base from queuectl.audit_ends)
