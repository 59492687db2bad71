"""The rules of a policy: what is read, and what they say about a job."""

from __future__ import annotations

from typing import Any

import pytest

from queuectl.errors import InvalidInput, UnknownName, UsageError
from queuectl.policy.parser import parse_policy
from queuectl.policy.rules import PROVIDER, Account, Identity, Refusal, Rules
from queuectl.secrets.rules import parse_stored

FILE = "/etc/policy.toml"


def rules(queue: str = "default", **said: Any) -> Rules:
    return parse_policy({key.replace("_", "-"): value for key, value in said.items()}, subject=FILE).of(queue)


def real(path: str) -> str | None:
    return path


def allowed(these: Rules, *names: str, args: tuple[str, ...] = ()) -> tuple[str, str] | Refusal:
    return these.allow(names, args, real_directory=real)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_policy_allows_everything() -> None:
    these = rules()
    assert these == Rules(names={})
    assert these.shell
    assert these.against_shell() is None
    assert allowed(these, "/bin/anything") == ("programs", "/bin/anything")
    assert these.against_directory("/anywhere", real_directory=real) is None
    assert these.against_variables(["LD_PRELOAD"]) is None
    assert these.against_timeout(10**9) is None
    assert these.capped(None) is None
    assert these.passes("ANY")


def test_a_list_of_programs_disables_the_shell_by_default() -> None:
    assert not rules(programs=["/bin/true"]).shell
    assert rules(programs=["/bin/true"], shell=True).shell
    refusal = rules(programs=[]).against_shell()
    assert refusal is not None
    assert refusal.rule == "shell"


def test_a_queue_inherits_every_key_that_it_does_not_set() -> None:
    said = {
        "shell": False,
        "max-timeout": "1h",
        "queues": {"mail": {"max-timeout": "1m", "programs": ["/usr/sbin/sendmail"]}, "free": {"shell": True}},
    }
    policy = parse_policy(said, subject=FILE)
    mail = policy.of("mail")
    assert (mail.shell, mail.max_timeout_ms) == (False, 60_000)
    assert mail.name("max-timeout") == "queues.mail.max-timeout"
    assert mail.name("shell") == "shell"
    assert [program.rule for program in mail.programs or ()] == ["queues.mail.programs[1]"]
    assert (policy.of("free").shell, policy.of("free").max_timeout_ms) == (True, 3_600_000)
    assert policy.of("other") is policy.general


@pytest.mark.parametrize(
    "said, subject",
    [
        ({"shell": "no"}, "shell"),
        ({"shell": 0}, "shell"),
        ({"programs": "/bin/true"}, "programs"),
        ({"programs": [7]}, "programs[1]"),
        ({"programs": [{}]}, "programs[1]"),
        ({"programs": ["true"]}, "programs[1]"),
        ({"programs": ["/bin/../bin/true"]}, "programs[1]"),
        ({"programs": ["/bin/\0"]}, "programs[1]"),
        ({"programs": ["/opt/*/bin/tool"]}, "programs[1]"),
        ({"programs": ["/"]}, "programs[1]"),
        ({"programs": ["/bin/a", {"program": "/bin/b", "args": "-v"}]}, "programs[2]"),
        ({"programs": [{"program": "/bin/b", "args": [1]}]}, "programs[1]"),
        ({"programs": [{"program": "/bin/b", "args": ["...", "x"]}]}, "programs[1]"),
        ({"programs": [{"program": "/bin/b", "name": ""}]}, "programs[1]"),
        ({"directories": ["srv"]}, "directories"),
        ({"directories": [""]}, "directories"),
        ({"directories": "/srv"}, "directories"),
        ({"environment": ["A=B"]}, "environment"),
        ({"environment": [1]}, "environment"),
        ({"environment": "PATH"}, "environment"),
        ({"job-environment": ["A B"]}, "job-environment"),
        ({"max-timeout": "soon"}, "max-timeout"),
        ({"max-timeout": 0}, "max-timeout"),
        ({"user": ""}, "user"),
        ({"user": True}, "user"),
        ({"user": ["deploy"]}, "user"),
        ({"user": "deploy:"}, "user"),
        ({"user": ":staff"}, "user"),
        ({"user": "a b"}, "user"),
        ({"user": "-deploy"}, "user"),
        ({"user": "../x"}, "user"),
        ({"user": "4294967295"}, "user"),
        ({"user": 4294967295}, "user"),
        ({"user": -1}, "user"),
        ({"user": 10**5000}, "user"),
        ({"umask": 27}, "umask"),
        ({"umask": "999"}, "umask"),
        ({"umask": "27"}, "umask"),
        ({"queues": {"mail": {"user": 1.5}}}, "queues.mail.user"),
        ({"max-memory": "much"}, "max-memory"),
        ({"max-memory": 0}, "max-memory"),
        ({"max-processes": "64"}, "max-processes"),
        ({"min-nice": 99}, "min-nice"),
        ({"queues": []}, "queues"),
        ({"queues": {"a b": {}}}, "queues.a b"),
        ({"queues": {"mail": 1}}, "queues.mail"),
        ({"queues": {"mail": {"shell": 1}}}, "queues.mail.shell"),
    ],
)
def test_an_invalid_value_is_refused_with_the_file_and_the_rule(said: dict[str, Any], subject: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_policy(said, subject=FILE)
    assert caught.value.subject == f"{FILE}: {subject}"
    assert caught.value.hint


@pytest.mark.parametrize(
    "said, word, near",
    [
        ({"shel": True}, "shel", "shell"),
        ({"queues": {"mail": {"queues": {}}}}, "queues.mail.queues", None),
        ({"programs": [{"program": "/bin/a", "arguments": []}]}, "arguments", "args"),
    ],
)
def test_an_unknown_rule_is_refused_with_the_nearest(said: dict[str, Any], word: str, near: str | None) -> None:
    with pytest.raises(UnknownName) as caught:
        parse_policy(said, subject=FILE)
    assert caught.value.name == word
    assert near is None or near in caught.value.hint
    assert isinstance(caught.value, UsageError)


# ── deciding ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_program_is_allowed_by_any_of_its_names_and_called_by_that_one() -> None:
    these = rules(programs=["/usr/bin/ls", {"program": "/opt/tool", "name": "the tool"}])
    assert allowed(these, "/tmp/x", "/usr/bin/ls", "/usr/bin/busybox") == ("programs[1]", "/usr/bin/ls")
    assert allowed(these, "/opt/tool") == ("the tool", "/opt/tool")


def test_a_program_that_shares_its_file_with_an_allowed_one_is_not_that_one() -> None:
    # /bin/ls and /bin/rm may both be links to busybox: which of them it is, is in the name.
    refusal = allowed(rules(programs=["/usr/bin/ls"]), "/usr/bin/rm", "/usr/bin/busybox")
    assert refusal == Refusal("programs", "/usr/bin/busybox is not in the list")


def test_wildcards_of_a_program_stay_in_its_directory() -> None:
    these = rules(programs=["/opt/bin/*"])
    assert not isinstance(allowed(these, "/opt/bin/tool"), Refusal)
    assert isinstance(allowed(these, "/opt/bin/more/tool"), Refusal)
    assert isinstance(allowed(these, "/opt/tool"), Refusal)
    assert not isinstance(allowed(rules(programs=["/init"]), "/init"), Refusal)


def test_a_directory_that_leads_nowhere_allows_nothing() -> None:
    these = rules(programs=["/opt/bin/tool"])
    assert isinstance(these.allow(["/opt/bin/tool"], (), real_directory=lambda _: None), Refusal)


def test_the_arguments_of_a_program_have_to_match_one_of_its_rules() -> None:
    these = rules(
        programs=[
            {"program": "/bin/tool", "args": ["-f", "/srv/*.sql"]},
            {"program": "/bin/tool", "args": []},
            {"program": "/bin/other", "args": [""]},
        ]
    )
    assert allowed(these, "/bin/tool", args=("-f", "/srv/a.sql")) == ("programs[1]", "/bin/tool")
    assert allowed(these, "/bin/tool") == ("programs[2]", "/bin/tool")
    assert allowed(these, "/bin/other", args=("",)) == ("programs[3]", "/bin/other")
    refusal = allowed(these, "/bin/tool", args=("-f", "/srv/../etc/x.sql"))
    assert refusal == Refusal("programs[1]", "/bin/tool may run, but not with these arguments")


@pytest.mark.parametrize("names", [("/usr/bin/bash",), ("/tmp/tool", "/usr/bin/dash"), ("/bin/sh", "/bin/busybox")])
def test_without_shell_a_shell_is_refused_as_a_program(names: tuple[str, ...]) -> None:
    refusal = allowed(rules(shell=False), *names)
    assert isinstance(refusal, Refusal)
    assert refusal.rule == "shell"
    assert not isinstance(allowed(rules(shell=False), "/usr/bin/ls"), Refusal)


@pytest.mark.parametrize(
    "path, is_fine",
    [("/srv/jobs", True), ("/srv/jobs/a/b", True), ("/srv/jobs-not", False), ("/srv", False), ("/", False)],
)
def test_a_job_runs_in_or_below_an_allowed_directory(path: str, is_fine: bool) -> None:
    refusal = rules(directories=["/srv/jobs/"]).against_directory(path, real_directory=real)
    assert (refusal is None) == is_fine
    assert rules(directories=["/"]).against_directory(path, real_directory=real) is None
    assert rules(directories=["/srv/jobs"]).against_directory(path, real_directory=lambda _: None) is not None


def test_with_a_list_of_programs_a_job_sets_only_listed_variables() -> None:
    listed = rules(programs=["/bin/true"])
    assert listed.against_variables([]) is None
    assert listed.against_variables(["LANG"]) == Refusal("job-environment", "a job may not set LANG")
    these = rules(programs=["/bin/true"], job_environment=["REPORT_*", "LANG"])
    assert these.against_variables(["LANG", "REPORT_DAY"]) is None
    assert these.against_variables(["LANG", "LC_ALL"]) is not None
    assert rules(job_environment=[]).against_variables(["A"]) is not None


def test_a_job_inherits_the_listed_variables_of_its_worker() -> None:
    these = rules(environment=["PATH", "LC_*"])
    assert [name for name in ("PATH", "LC_ALL", "AWS_SECRET", "PATHS") if these.passes(name)] == ["PATH", "LC_ALL"]


def test_a_time_limit_over_the_maximum_is_refused_and_none_becomes_the_maximum() -> None:
    these = rules(max_timeout="1h")
    assert these.against_timeout(3_600_000) is None
    assert these.against_timeout(None) is None
    refusal = these.against_timeout(3_600_001)
    assert refusal is not None
    assert refusal.rule == "max-timeout"
    assert [these.capped(ms) for ms in (None, 1000, 9_000_000)] == [3_600_000, 1000, 3_600_000]


def test_a_limit_over_the_maximum_is_refused_and_none_becomes_the_maximum() -> None:
    these = rules(max_memory="1GiB", min_nice=5)
    assert these.against_limits(None) is None
    assert these.against_limits({"memory": 2**30, "nice": 9}) is None
    assert these.against_limits({"memory": 2**31}) == ("max-memory", "memory 2GiB, at most 1GiB")
    assert these.capped_limits({"processes": 3}) == {"memory": 2**30, "nice": 5, "processes": 3}


def test_a_queue_may_have_more_of_a_resource_than_the_others() -> None:
    said = {"max-memory": "1GiB", "max-processes": 64, "queues": {"big": {"max-memory": "8GiB"}}}
    policy = parse_policy(said, subject="f")
    assert policy.of("any").most == {"memory": 2**30, "processes": 64}
    assert policy.of("big").most == {"memory": 2**33, "processes": 64}
    assert policy.of("big").name("max-memory") == "queues.big.max-memory"


def test_with_a_policy_a_job_gets_only_listed_secrets() -> None:
    assert rules().against_secrets(parse_stored(())) is None
    refusal = rules().against_secrets(parse_stored(["PGPASSWORD=db-main"]))
    assert refusal == Refusal("secrets", "a job may not have the secret db-main")
    these = rules(secrets=["db-*", "TOKEN"])
    assert these.against_secrets(parse_stored(["PGPASSWORD=db-main", "TOKEN"])) is None
    assert these.against_secrets(parse_stored(["PGPASSWORD=db-main", "X=other"])) is not None


def test_a_queue_may_have_secrets_of_its_own() -> None:
    said = {"secrets": ["a"], "queues": {"deploy": {"secrets": ["deploy-*"]}}}
    assert rules("deploy", **said).against_secrets(parse_stored(["X=deploy-key"])) is None
    refusal = rules("deploy", **said).against_secrets(parse_stored(["X=a"]))
    assert refusal is not None
    assert refusal.rule == "queues.deploy.secrets"


def test_a_secret_cannot_set_a_variable_that_loads_code() -> None:
    listed = rules(secrets=["*"], programs=["/bin/true"])
    assert listed.against_secrets(parse_stored(["PGPASSWORD=db"])) is None
    refusal = listed.against_secrets(parse_stored(["LD_PRELOAD=db"]))
    assert refusal == Refusal("job-environment", "a job may not set LD_PRELOAD")
    named = rules(secrets=["*"], programs=["/bin/true"], **{"job-environment": ["LD_PRELOAD"]})
    assert named.against_secrets(parse_stored(["LD_PRELOAD=db"])) is None
    assert rules(secrets=["*"]).against_secrets(parse_stored(["LD_PRELOAD=db"])) is None


@pytest.mark.parametrize("value", ["db", [1], ["a/b"], [""], ["-x"]])
def test_invalid_names_of_secrets_are_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"policy\.toml: secrets"):
        parse_policy({"secrets": value}, subject="policy.toml")


# ── users ─────────────────────────────────────────────────────────────────────────────────────────────────────────

DEPLOY = Account("deploy", 1500, 1500, (1500,), "/home/deploy", "/bin/bash")


@pytest.mark.parametrize(
    "said, user, group",
    [
        ("deploy", "deploy", None),
        ("deploy:www-data", "deploy", "www-data"),
        ("1500:1500", "1500", "1500"),
        (1500, "1500", None),
        (0, "0", None),
        ("svc-x$", "svc-x$", None),
        ("corp\\\\ada", "corp\\\\ada", None),
    ],
)
def test_a_user_is_a_name_or_a_number_with_or_without_a_group(said: object, user: str, group: str | None) -> None:
    found = rules(user=said).user
    assert found == Identity(user, group)
    assert str(found) == (user if group is None else f"{user}:{group}")


def test_a_queue_has_its_own_user_and_umask() -> None:
    policy = parse_policy({"user": "a", "umask": "027", "queues": {"b": {"user": "b", "umask": "0002"}}}, subject=FILE)
    assert (policy.of("x").user, policy.of("x").umask) == (Identity("a"), 0o027)
    assert (policy.of("b").user, policy.of("b").umask) == (Identity("b"), 0o002)
    assert policy.of("b").name("user") == "queues.b.user"


def test_another_user_gets_a_login_environment_and_harmless_variables_of_the_worker() -> None:
    ours = {"HOME": "/root", "PATH": "/root/bin", "PGPASSWORD": "x", "LC_ALL": "C", "LANG": "de", "TZ": "UTC"}
    login = {"HOME": "/home/deploy", "USER": "deploy", "LOGNAME": "deploy", "SHELL": "/bin/bash"}
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    assert rules().seen(ours, DEPLOY) == {"LC_ALL": "C", "LANG": "de", "TZ": "UTC", **login, **path}
    assert rules(environment=["PATH", "HOME"]).seen(ours, DEPLOY) == {**login, "PATH": "/root/bin"}
    assert rules(environment=["LANG"]).seen(ours, None) == {"LANG": "de"}
    assert rules().seen(ours, None) == ours


def test_the_secret_provider_has_the_rules_of_all_unless_it_has_its_own() -> None:
    shared = parse_policy({"shell": False}, subject=FILE)
    own = parse_policy({"shell": False, "secret-provider": {"shell": True}}, subject=FILE)
    assert shared.of(PROVIDER) == shared.general
    assert own.of(PROVIDER) != own.general
    assert own.of(PROVIDER) in own.all_rules


def test_the_rules_of_the_secret_provider_are_a_table() -> None:
    with pytest.raises(InvalidInput, match="expected a table"):
        parse_policy({"secret-provider": 5}, subject=FILE)
