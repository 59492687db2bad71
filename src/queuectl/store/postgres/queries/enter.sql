-- enter: the first statement of every transaction. For this transaction only: behind a pooler the next one may run in
-- another session, and this session may serve another client. What takes long is ended by the server, also if we are gone.
-- But not while it waits for the rest of what we send, before PostgreSQL 17: so a worker's transaction has its name, see
-- end_transactions.sql, and any other is ended by who finds it in the way, see end_stalled.sql.
-- The planner is kept to the indexes (SQLite: `indexed by`), and to those that give the order asked for: a plan made while
-- the tables, or the lines, were empty would go through all of them, and be kept while they grow to millions of rows.
select set_config('statement_timeout', %(statement_ms)s, true),
       set_config('lock_timeout', %(lock_ms)s, true),
       set_config('idle_in_transaction_session_timeout', %(statement_ms)s, true),
       case
           when current_setting('server_version_num')::integer >= 170000
           then set_config('transaction_timeout', %(transaction_ms)s, true)
       end,
       set_config('application_name', coalesce(%(name)s, current_setting('application_name')), true),
       set_config('enable_seqscan', %(plan_freely)s, true),
       set_config('enable_bitmapscan', %(plan_freely)s, true),
       set_config('enable_hashjoin', %(plan_freely)s, true),
       set_config('enable_mergejoin', %(plan_freely)s, true),
       set_config('enable_sort', %(plan_freely)s, true),
       set_config('enable_incremental_sort', %(plan_freely)s, true),
       set_config('plan_cache_mode', case %(plan_freely)s when 'on' then 'auto' else 'force_generic_plan' end, true)
