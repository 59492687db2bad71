-- name: enter
-- The first statement of every transaction. It overrides the settings of the server, the database and the role. For this transaction only:
-- behind a pooler the next one may run in another session, and this session may serve another client.
-- Time limits: the server ends what takes too long, also if we are gone. Before PostgreSQL 17 it does not while it waits for the rest of what we
-- send, so a worker's transaction has its name (`end_transactions`), and others end any that is in their way (`end_stalled`).
-- JIT is off already (`NO_JIT` in connection.py): a statement that touches ten rows is compiled a hundred times as long as it runs.
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

-- name: end_stalled
-- A client that was stopped while it sends leaves a transaction that does nothing, and does not count as idle. Those that have
-- waited for the rest of a request for this long are rolled back, and their sessions end. Not a stream of rows: that waits for
-- its client between any two of them. Only sessions that this role may end, so that one refusal does not stop the rest. (SQLite
-- has no sessions: a stopped process keeps the lock of the file.)
select pg_terminate_backend(pid)
  from pg_stat_activity
 where datname = current_database()
   and pid <> pg_backend_pid()
   and state = 'active'
   and wait_event_type = 'Client'
   and wait_event = 'ClientRead'
   and query_start < clock_timestamp() - %(stalled_ms)s * interval '1 ms'
   and query !~* '^copy'
   and (usename = current_user or pg_has_role('pg_signal_backend', 'usage'))
   and exists (
       select 1
         from pg_locks
         join pg_class
           on pg_class.oid = pg_locks.relation
        where pg_locks.pid = pg_stat_activity.pid
          and pg_class.relnamespace = to_regnamespace('queuectl')
   )

-- name: changed
-- Which transactions have ended, of the whole server: two equal answers mean that nothing was written between them. Also the ID
-- of the store and the version of the schema: the store may have been replaced, or migrated by a newer queuectl. (SQLite:
-- pragma data_version.)
select pg_current_snapshot()::text, id, version
  from queuectl.meta

-- name: server
-- The version of the server, whether it is read-only, the version of our schema, and the settings that make a commit durable.
-- (SQLite: pragma user_version, and the version of the library.)
select current_setting('server_version'), pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean, version,
       current_setting('synchronous_commit'), current_setting('fsync')
  from queuectl.meta

-- name: tables
-- For each table of a store, whether it exists, and which privileges this role lacks. (SQLite: pragma integrity_check, and the
-- mode of the file.)
select name,
       to_regclass('queuectl.' || name) is not null,
       array(
           select needed
             from unnest(string_to_array(rights, ' ')) as needed
            where not case needed
                      when 'usage' then has_sequence_privilege(to_regclass('queuectl.' || name), needed)
                      else has_table_privilege(to_regclass('queuectl.' || name), needed)
                  end
       )
  from unnest(%(names)s::text[], %(rights)s::text[]) as wanted (name, rights)
 order by name

-- name: measure
-- The clock of the server. (SQLite: this machine's.)
select (extract(epoch from clock_timestamp()) * 1000)::bigint
