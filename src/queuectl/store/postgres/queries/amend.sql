-- amend: change jobs that wait. What is null stays as it is; a timeout of 0 means none. The caller has locked them in this
-- transaction, and says where each stands now. (SQLite takes one at a time: there a statement costs no round trip.)
update queuectl.jobs
   set command = case when %(argv)s::text is null then coalesce(%(command)s::text, command) end,
       argv = case when %(command)s::text is null then coalesce(%(argv)s::text, argv) end,
       queue = coalesce(%(queue)s::text, queue),
       priority = place.priority,
       rank = place.rank,
       eligible_at = place.eligible_at,
       run_at = place.run_at,
       ready = place.ready,
       aside = false,
       ready_since = pg_current_xact_id(),
       held = place.held,
       max_retries = coalesce(%(max_retries)s::integer, max_retries),
       first_is_free = coalesce(%(first_is_free)s::boolean, first_is_free),
       timeout_ms = nullif(coalesce(%(timeout_ms)s::bigint, timeout_ms), 0),
       secrets = nullif(coalesce(%(secrets)s::text, secrets), '[]'),
       hooks = case
           when %(hooks)s::text is null then hooks
           else nullif(jsonb_strip_nulls(coalesce(hooks, '{}')::jsonb || %(hooks)s::jsonb), '{}'::jsonb)::text
       end,
       limits = case
           when %(limits)s::text is null then limits
           else nullif(jsonb_strip_nulls(coalesce(limits, '{}')::jsonb || %(limits)s::jsonb), '{}'::jsonb)::text
       end,
       updated_at = greatest(%(now)s, created_at)
  from unnest(
           %(seqs)s::bigint[], %(priorities)s::integer[], %(ranks)s::bigint[], %(eligible_ats)s::bigint[], %(run_ats)s::bigint[],
           %(readies)s::boolean[], %(helds)s::boolean[]
       ) as place (seq, priority, rank, eligible_at, run_at, ready, held)
 where jobs.seq = any(%(seqs)s)
   and jobs.seq = place.seq
   and state in ('blocked', 'pending', 'failed')
