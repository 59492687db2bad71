"""Reading a policy: from the tables of a policy.toml to the rules that they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.duration import parse_duration_ms
from queuectl.job.nearest import nearest
from queuectl.job.policy import Policy, Program, Rules
from queuectl.job.printable import printable
from queuectl.job.resources import CEILINGS, parse_ceiling
from queuectl.job.shown import cut, shown
from queuectl.job.user import parse_identity, parse_umask

_PLAIN: Final = (
    *("shell", "programs", "directories", "environment", "job-environment", "secrets", "max-timeout", "user", "umask"),
)
KEYS: Final = (*_PLAIN, *CEILINGS)
QUEUES: Final = "queues"
PROVIDER_TABLE: Final = "secret-provider"
_OF_A_PROGRAM: Final = ("program", "args", "name")
_VARIABLE: Final = re.compile(r"[A-Za-z_*?][A-Za-z0-9_*?]*")
_SECRET: Final = re.compile(r"[A-Za-z0-9*?][A-Za-z0-9._:*?-]{0,127}")
_QUEUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def parse_policy(said: Mapping[str, Any], *, subject: str) -> Policy:
    """From the tables of a policy.toml. Raises InvalidInput or UnknownName, which name `subject`, the file."""
    general = {key: value for key, value in said.items() if key not in (QUEUES, PROVIDER_TABLE)}
    queues = said.get(QUEUES, {})
    if not isinstance(queues, dict):
        raise InvalidInput(
            f"{subject}: {QUEUES}", f"expected tables, got {shown(queues)}", hint="like [queues.reports]"
        )
    read = _read(general, "", subject)
    found = {}
    for queue, table in queues.items():
        where = f"{QUEUES}.{printable(cut(queue))}"
        if not _QUEUE.fullmatch(queue):
            raise InvalidInput(f"{subject}: {where}", "not the name of a queue", hint="like [queues.reports]")
        if not isinstance(table, dict):
            raise InvalidInput(f"{subject}: {where}", f"expected a table, got {shown(table)}", hint=f"like [{where}]")
        # Key by key: what a queue does not say is as for all.
        found[queue] = _rules({**read, **_read(table, f"{where}.", subject)})
    provider = said.get(PROVIDER_TABLE)
    if provider is not None and not isinstance(provider, dict):
        about = f"{subject}: {PROVIDER_TABLE}"
        raise InvalidInput(about, f"expected a table, got {shown(provider)}", hint=f"like [{PROVIDER_TABLE}]")
    own = None if provider is None else _rules({**read, **_read(provider, f"{PROVIDER_TABLE}.", subject)})
    return Policy(_rules(read), found, own)


_Read = dict[str, tuple[str, Any]]  # by key: its name in full, and its value


def _rules(read: _Read) -> Rules:
    values = {key: value for key, (_, value) in read.items()}
    programs = values.get("programs")
    return Rules(
        shell=values.get("shell", programs is None),
        programs=programs,
        directories=values.get("directories"),
        environment=values.get("environment"),
        job_environment=values.get("job-environment"),
        secrets=values.get("secrets", ()),
        max_timeout_ms=values.get("max-timeout"),
        user=values.get("user"),
        umask=values.get("umask"),
        most={name: values[key] for key, name in CEILINGS.items() if key in values},
        names={key: name for key, (name, _) in read.items()},
    )


def _read(table: Mapping[str, Any], where: str, subject: str) -> _Read:
    found: _Read = {}
    for key, value in table.items():
        name = where + printable(cut(key))
        about = f"{subject}: {name}"
        if key not in KEYS:
            known = (*KEYS, QUEUES, PROVIDER_TABLE) if not where else KEYS
            raise UnknownName("rule in " + subject, name, nearest=nearest(key, known), known=known)
        if key == "shell":
            if not isinstance(value, bool):
                raise InvalidInput(about, f"expected true or false, got {shown(value)}", hint="shell = false")
            found[key] = name, value
        elif key == "max-timeout":
            found[key] = name, _longest(value, about)
        elif key == "user":
            found[key] = name, parse_identity(value, about)
        elif key == "umask":
            found[key] = name, parse_umask(value, about)
        elif key in CEILINGS:
            found[key] = name, parse_ceiling(key, value, about)
        elif key == "programs":
            items = _list(value, about, hint='like programs = ["/usr/bin/rsync"]')
            found[key] = name, tuple(_program(item, f"{name}[{at}]", subject) for at, item in enumerate(items, 1))
        elif key == "directories":
            items = _list(value, about, hint='like directories = ["/srv/jobs"]')
            found[key] = name, tuple(_absolute(item, about) for item in items)
        elif key == "secrets":
            items = _list(value, about, hint='like secrets = ["db-password", "api-*"]')
            found[key] = name, tuple(_secret(item, about) for item in items)
        else:
            items = _list(value, about, hint=f'like {key} = ["LANG", "LC_*"]')
            found[key] = name, tuple(_variable(item, about) for item in items)
    return found


def _longest(value: Any, about: str) -> int:
    ms = parse_duration_ms(value, subject=about)
    if ms < 1:
        raise InvalidInput(about, "no job could run", hint="leave it away for no limit, or give a duration like 1h")
    return ms


def _list(value: Any, about: str, *, hint: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(about, f"expected a list, got {shown(value)}", hint=hint)
    return value


def _text(value: Any, about: str, *, hint: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidInput(about, f"expected text, got {shown(value)}", hint=hint)
    return value


def _absolute(value: Any, about: str) -> str:
    path = _text(value, about, hint="like /srv/jobs")
    # Without the detours: a rule is read by people, too.
    if not path.startswith("/") or {".", ".."} & set(path.split("/")):
        raise InvalidInput(about, f"not an absolute path: {shown(path)}", hint="from / on, without . and ..")
    return "/" + "/".join(part for part in path.split("/") if part)


def _program(item: Any, rule: str, subject: str) -> Program:
    about = f"{subject}: {rule}"
    hint = 'a path, or { program = "/usr/bin/psql", args = ["-f", "/srv/sql/*.sql"] }'
    table = item if isinstance(item, dict) else {"program": item}
    for key in table:
        if key not in _OF_A_PROGRAM:
            known = _OF_A_PROGRAM
            raise UnknownName(f"word in {about}", printable(cut(key)), nearest=nearest(key, known), known=known)
    path = _absolute(_text(table.get("program"), about, hint=hint), about)
    if any(letter in path.rpartition("/")[0] for letter in "*?") or path == "/":
        raise InvalidInput(about, "wildcards may stand in the last name only", hint="like /opt/tools/bin/*")
    args = table.get("args")
    if args is not None:
        words = _list(args, about, hint='like args = ["-f", "/srv/sql/*.sql"]')
        args = tuple(_text(word, about, hint=hint) if word != "" else "" for word in words)
        if any(word.endswith("...") for word in args[:-1]):
            raise InvalidInput(about, "only the last of args may end in ...", hint='like args = ["-v", "..."]')
    return Program(rule if "name" not in table else printable(_text(table["name"], about, hint=hint)), path, args)


def _variable(item: Any, about: str) -> str:
    if not isinstance(item, str) or not _VARIABLE.fullmatch(item):
        raise InvalidInput(about, f"not the name of a variable: {shown(item)}", hint="like LANG or LC_*")
    return item


def _secret(item: Any, about: str) -> str:
    if not isinstance(item, str) or not _SECRET.fullmatch(item):
        raise InvalidInput(about, f"not the name of a secret: {shown(item)}", hint="like db-password or api-*")
    return item
