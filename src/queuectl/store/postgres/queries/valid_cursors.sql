-- valid_cursors: where a claim can begin to read each queue (null: all queues together), for candidates_from_cursor.sql and queue_heads.sql.
-- Up to its cursor (rank, seq; null: unknown) the caller found nothing left when it had seen the transactions `seen`. Only jobs that became
-- ready since can stand before it (`fresh`). If one does, or if there are too many to check, the queue is read from its beginning. (SQLite has no dead rows.)
fresh as materialized (
    (
        select queue, rank, seq
          from queuectl.jobs
         where ready
           and not aside
           and ready_since >= pg_snapshot_xmax(%(seen)s::pg_snapshot)
         order by ready_since
         limit 2000
    )
    union all
    (
        select became_ready.*
          from pg_snapshot_xip(%(seen)s::pg_snapshot) as running (xid)
         cross join lateral (
            select queue, rank, seq
              from queuectl.jobs
             where ready
               and not aside
               and ready_since >= running.xid
               and ready_since <= running.xid
             order by ready_since
             limit 2000
         ) as became_ready
         limit 2000
    )
),
cursors as materialized (
    select turn, queue,
           case when is_valid then rank else -9223372036854775808 end as rank,
           case when is_valid then seq else 0 end as seq
      from (
        select cursor.turn, cursor.queue, cursor.rank, cursor.seq,
               cursor.rank is not null
               and (select count(*) from fresh) < 2000
               and not exists (
                   select 1
                     from fresh
                    where (fresh.queue = cursor.queue or (cursor.queue is null and fresh.queue <> 'queuectl.webhooks'))
                      and (fresh.rank, fresh.seq) <= (cursor.rank, cursor.seq)
               ) as is_valid
          from unnest(%(queues)s::text[], %(cursor_ranks)s::bigint[], %(cursor_seqs)s::bigint[])
               with ordinality as cursor (queue, rank, seq, turn)
      ) as checked
)
