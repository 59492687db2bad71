-- end_transactions: whatever a worker has under way is rolled back, and its sessions end. Only those of the one that was meant,
-- as in fence.sql: who has given a sign meanwhile goes on. A session has that name only within a transaction, see enter.sql.
-- Waits for a second until they are gone. Needs no right where all workers have one role. (SQLite has no sessions.)
select pg_terminate_backend(pid, 1000)
  from pg_stat_activity
 where datname = current_database()
   and application_name = %(name)s
   and pid <> pg_backend_pid()
   and exists (
       select 1
         from queuectl.workers
        where id = %(id)s
          and (%(started_at)s::bigint is null or started_at = %(started_at)s)
          and (%(beats)s::bigint is null or beats = %(beats)s)
   )
