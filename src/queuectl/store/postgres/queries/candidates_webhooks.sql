-- candidates_webhooks: the first webhook deliveries, for claim.sql. (SQLite asks queue by queue.)
candidates as (
    select 1::bigint as turn, jobs.*
      from queuectl.jobs
     where ready
       and not aside
       and (queue, rank, seq) > ('queuectl.webhooks', -9223372036854775808, 0)
       and queue <= 'queuectl.webhooks'
       and (select is_open and is_unlimited from gate)
     order by queue, rank, seq
     limit %(limit)s
       for update skip locked
)
