-- keep_request: what was answered to a request, in the place of one that was too long ago.
insert into requests (key, digest, answer, at)
values (:key, :digest, :answer, :now)
on conflict (key) do update set digest = excluded.digest, answer = excluded.answer, at = excluded.at
