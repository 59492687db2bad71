-- set_ageing: the setting of this name, for the statements that compute with it.
-- (SQLite computes with it in Python, and in rerank.sql.)
update queuectl.meta
   set ageing = %(ageing)s,
       step_ms = %(step_ms)s
