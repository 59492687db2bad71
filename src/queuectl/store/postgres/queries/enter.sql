-- enter: the first statement of every transaction. It overrides the settings of the server, the database and the role. For this transaction only:
-- behind a pooler the next one may run in another session, and this session may serve another client.
-- Time limits: the server ends what takes too long, also if we are gone. Before PostgreSQL 17 it does not while it waits for the rest of what we
-- send, so a worker's transaction has its name (end_transactions.sql), and others end any that is in their way (end_stalled.sql).
-- JIT: a statement that touches ten rows is compiled a hundred times as long as it runs.
-- Parallel workers: up to PostgreSQL 17 a plan type that is switched off adds 10^10 to the cost of a plan, so the server starts two
-- processes to read a page of ten jobs.
-- Plans: the planner is kept to the indexes, and to those that give the order asked for (SQLite: `indexed by`). By statistics of an idle
-- minute it would sort all jobs that are ready, and a generic plan made while the tables were empty would read all of them. ADR 41 has
-- the plans. `plan_freely`: for reads of a whole table.
-- The search path: no function or operator of another schema is taken for one of the system.
select set_config('statement_timeout', %(statement_ms)s, true),
       set_config('lock_timeout', %(lock_ms)s, true),
       set_config('idle_in_transaction_session_timeout', %(statement_ms)s, true),
       case
           when current_setting('server_version_num')::integer >= 170000
           then set_config('transaction_timeout', %(transaction_ms)s, true)
       end,
       set_config('application_name', coalesce(%(name)s, current_setting('application_name')), true),
       set_config('search_path', 'pg_catalog', true),
       set_config('jit', 'off', true),
       set_config(
           'max_parallel_workers_per_gather',
           case %(plan_freely)s when 'on' then current_setting('max_parallel_workers_per_gather') else '0' end,
           true
       ),
       set_config('enable_seqscan', %(plan_freely)s, true),
       set_config('enable_bitmapscan', %(plan_freely)s, true),
       set_config('enable_hashjoin', %(plan_freely)s, true),
       set_config('enable_mergejoin', %(plan_freely)s, true),
       set_config('enable_sort', %(plan_freely)s, true),
       set_config('enable_incremental_sort', %(plan_freely)s, true),
       set_config('plan_cache_mode', case %(plan_freely)s when 'on' then 'auto' else 'force_generic_plan' end, true)
