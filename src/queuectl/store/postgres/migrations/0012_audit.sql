-- Who changed what, in a chain: see job/audit.py. What is in it stays as it is; only the oldest go, when they have been kept long enough.
create table queuectl.audit (
    seq bigint primary key,
    at bigint not null,
    record text not null,  -- who, what, before and after, as JSON
    hash text not null     -- of this and of the one before
);

-- Where the chain begins and ends: `base` is the last record that was forgotten. No row: there is none yet. Whoever adds one holds this row until the commit.
create table queuectl.audit_ends (
    one integer primary key check (one = 1),
    base bigint not null,
    base_hash text not null,
    head bigint not null check (head >= base),
    head_hash text not null
) with (fillfactor = 10, autovacuum_vacuum_threshold = 100, autovacuum_vacuum_scale_factor = 0);

create function queuectl.refuse_audit() returns trigger language plpgsql as $$
begin
    raise exception 'what is in the audit is neither changed nor removed';
end
$$;

create function queuectl.keep_audit() returns trigger language plpgsql as $$
begin
    if old.seq > coalesce((select base from queuectl.audit_ends), 0) then
        raise exception 'what is in the audit is neither changed nor removed';
    end if;
    return old;
end
$$;

create trigger audit_stays before update on queuectl.audit for each row execute function queuectl.refuse_audit();
create trigger audit_is_kept before delete on queuectl.audit for each row execute function queuectl.keep_audit();
create trigger audit_is_whole before truncate on queuectl.audit for each statement execute function queuectl.refuse_audit();
