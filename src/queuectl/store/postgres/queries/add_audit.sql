-- add_audit: the next record of the chain. Last in its transaction: until the commit everybody else waits who has one to add. The hash is
-- that of job/audit.py.
with moved as (
    insert into queuectl.audit_ends as ends (one, base, base_hash, head, head_hash)
    values (1, 0, %(nothing)s::text, 1,
            encode(sha256(convert_to(concat_ws(chr(10), %(nothing)s::text, 1, %(at)s::bigint, %(record)s::text), 'UTF8')), 'hex'))
        on conflict (one) do update
       set head = ends.head + 1,
           head_hash = encode(
               sha256(convert_to(concat_ws(chr(10), ends.head_hash, ends.head + 1, %(at)s::bigint, %(record)s::text), 'UTF8')), 'hex'
           )
    returning head, head_hash
)
insert into queuectl.audit (seq, at, record, hash)
select head, %(at)s::bigint, %(record)s::text, head_hash
  from moved
