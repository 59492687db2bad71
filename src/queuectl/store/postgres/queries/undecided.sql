-- undecided: parents some of whose children may not have been told what became of them. Those that another is just seeing to are
-- left to it.
select ctid::text, parent
  from queuectl.undecided
 limit %(limit)s
   for update skip locked
