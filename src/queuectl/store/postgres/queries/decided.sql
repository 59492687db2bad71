-- decided: all children of these parents have been told. By the rows that were locked: one that was added since says that there
-- may be more.
delete from queuectl.undecided
 where ctid = any(%(rows)s::tid[])
