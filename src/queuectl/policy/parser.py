"""Read and parse a policy.toml. A file that other users could change is refused."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, PolicyUnusable, UnknownName
from queuectl.jobs.resources import CEILINGS, parse_ceiling
from queuectl.policy.accounts import Accounts, find_accounts
from queuectl.policy.paths import UntrustedFile, read_trusted_file
from queuectl.policy.rules import Policy, Program, Rules, parse_identity, parse_umask
from queuectl.text import closest_match, escape_control, is_valid_queue, short_repr, truncate
from queuectl.units import parse_duration_ms

FILE_NAME: Final = "policy.toml"
MAX_FILE_BYTES: Final = 1 << 20
_PLAIN_KEYS: Final = (
    *("shell", "programs", "directories", "environment", "job-environment", "secrets", "max-timeout", "user", "umask"),
)
KEYS: Final = (*_PLAIN_KEYS, *CEILINGS)
QUEUES: Final = "queues"
PROVIDER_TABLE: Final = "secret-provider"
_PROGRAM_KEYS: Final = ("program", "args", "name")


FileVersion = tuple[int, ...]  # differs if the file was replaced or its content was changed


class LoadedPolicy(NamedTuple):
    path: str
    policy: Policy
    accounts: Accounts
    version: FileVersion


def default_path(home: str) -> str:
    return os.path.join(home, FILE_NAME)


def has_policy(home: str) -> bool:
    """Whether policy.toml exists. True if it cannot be examined, so that reading it fails: only its absence allows everything. A
    dangling symbolic link is no absence."""
    try:
        os.lstat(default_path(home))
    except OSError as exc:
        return not isinstance(exc, FileNotFoundError | NotADirectoryError)
    return True


def file_version(path: str) -> FileVersion | None:
    try:
        return _version_of(os.stat(path))
    except OSError:
        return None


def read_policy(path: str, *, user: int) -> LoadedPolicy:
    """Raises PolicyUnusable if the file is missing, if users other than `user` and root could change it, or if it names unknown users;
    InvalidInput if it cannot be parsed."""
    try:
        text, found = read_trusted_file(path, user=user, max_bytes=MAX_FILE_BYTES)
    except UntrustedFile as exc:
        raise PolicyUnusable(path, exc.problem, hint=exc.hint) from exc
    except OSError as exc:
        raise PolicyUnusable(path, (exc.strerror or str(exc)).lower()) from exc
    policy = parse_policy(parse_toml(text, path, hint="queuectl help policy shows one"), subject=path)
    return LoadedPolicy(path, policy, find_accounts(policy, path), _version_of(found))


def parse_toml(text: bytes, path: str, *, hint: str) -> dict[str, Any]:
    """Raises InvalidInput, which names the file at `path`."""
    import tomllib  # lazy: most data directories have no TOML file

    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(path, f"is not TOML: {exc}", hint=hint) from exc


def _version_of(found: os.stat_result) -> FileVersion:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def parse_policy(tables: Mapping[str, Any], *, subject: str) -> Policy:
    """Parse the tables of a policy.toml. `subject`: the file. Raises InvalidInput or UnknownName."""
    general = {key: value for key, value in tables.items() if key not in (QUEUES, PROVIDER_TABLE)}
    read = _parse_table(general, "", subject)

    def parse_section(table: Any, name: str) -> Rules:
        # It inherits every key that it does not set.
        return _rules({**read, **_parse_table(_table(table, f"{subject}: {name}", f"[{name}]"), f"{name}.", subject)})

    found = {}
    for queue, table in _table(tables.get(QUEUES, {}), f"{subject}: {QUEUES}", "[queues.reports]").items():
        where = f"{QUEUES}.{escape_control(truncate(queue))}"
        if not is_valid_queue(queue):
            raise InvalidInput(f"{subject}: {where}", "not the name of a queue", hint="like [queues.reports]")
        found[queue] = parse_section(table, where)
    provider = tables.get(PROVIDER_TABLE)
    return Policy(_rules(read), found, None if provider is None else parse_section(provider, PROVIDER_TABLE))


def _table(value: Any, about: str, example: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(about, f"expected a table, got {short_repr(value)}", hint=f"like {example}")
    return value


_ParsedTable = dict[str, tuple[str, Any]]  # by key: its full name and its value


def _rules(read: _ParsedTable) -> Rules:
    values = {key.replace("-", "_"): value for key, (_, value) in read.items() if key not in CEILINGS}
    return Rules(
        shell=values.pop("shell", "programs" not in values),
        max_timeout_ms=values.pop("max_timeout", None),
        most={CEILINGS[key]: value for key, (_, value) in read.items() if key in CEILINGS},
        names={key: name for key, (name, _) in read.items()},
        **values,
    )


def _parse_table(table: Mapping[str, Any], where: str, subject: str) -> _ParsedTable:
    found: _ParsedTable = {}
    for key, value in table.items():
        name = where + escape_control(truncate(key))
        about = f"{subject}: {name}"
        if key not in KEYS:
            known = (*KEYS, QUEUES, PROVIDER_TABLE) if not where else KEYS
            raise UnknownName("rule in " + subject, name, nearest=closest_match(key, known), known=known)
        if key in CEILINGS:
            found[key] = name, parse_ceiling(key, value, about)
        elif key == "programs":
            items = _list(value, about, hint='like programs = ["/usr/bin/rsync"]')
            found[key] = name, tuple(_program(item, f"{name}[{at}]", subject) for at, item in enumerate(items, 1))
        elif key in _LISTS:
            parse, example = _LISTS[key]
            found[key] = name, tuple(parse(item, about) for item in _list(value, about, hint=f"like {key} = {example}"))
        else:
            found[key] = name, _VALUES[key](value, about)
    return found


def _shell(value: Any, about: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(about, f"expected true or false, got {short_repr(value)}", hint="shell = false")
    return value


def _max_timeout(value: Any, about: str) -> int:
    ms = parse_duration_ms(value, subject=about)
    if ms < 1:
        raise InvalidInput(about, "no job could run", hint="omit it for no limit, or give a duration like 1h")
    return ms


def _list(value: Any, about: str, *, hint: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(about, f"expected a list, got {short_repr(value)}", hint=hint)
    return value


def _text(value: Any, about: str, *, hint: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InvalidInput(about, f"expected text, got {short_repr(value)}", hint=hint)
    return value


def _absolute(value: Any, about: str) -> str:
    path = _text(value, about, hint="like /srv/jobs")
    if not path.startswith("/") or {".", ".."} & set(path.split("/")):
        raise InvalidInput(about, f"not an absolute path: {short_repr(path)}", hint="from / on, without . and ..")
    return "/" + "/".join(part for part in path.split("/") if part)


def _program(item: Any, rule: str, subject: str) -> Program:
    about = f"{subject}: {rule}"
    hint = 'a path, or { program = "/usr/bin/psql", args = ["-f", "/srv/sql/*.sql"] }'
    table = item if isinstance(item, dict) else {"program": item}
    for key in table:
        if key not in _PROGRAM_KEYS:
            known = _PROGRAM_KEYS
            raise UnknownName(
                f"key in {about}", escape_control(truncate(key)), nearest=closest_match(key, known), known=known
            )
    path = _absolute(_text(table.get("program"), about, hint=hint), about)
    if any(letter in path.rpartition("/")[0] for letter in "*?") or path == "/":
        raise InvalidInput(about, "wildcards are allowed in the last component only", hint="like /opt/tools/bin/*")
    args = table.get("args")
    if args is not None:
        arguments = _list(args, about, hint='like args = ["-f", "/srv/sql/*.sql"]')
        args = tuple(_text(argument, about, hint=hint) if argument != "" else "" for argument in arguments)
        if any(argument.endswith("...") for argument in args[:-1]):
            raise InvalidInput(about, "only the last of args may end in ...", hint='like args = ["-v", "..."]')
    return Program(rule if "name" not in table else escape_control(_text(table["name"], about, hint=hint)), path, args)


def _name_of(what: str, form: str, example: str) -> Callable[[Any, str], str]:
    def parse(item: Any, about: str) -> str:
        if not isinstance(item, str) or not re.fullmatch(form, item):
            raise InvalidInput(about, f"not the name of a {what}: {short_repr(item)}", hint=f"like {example}")
        return item

    return parse


_variable: Final = _name_of("variable", r"[A-Za-z_*?][A-Za-z0-9_*?]*", "LANG or LC_*")
_secret: Final = _name_of("secret", r"[A-Za-z0-9*?][A-Za-z0-9._:*?-]{0,127}", "db-password or api-*")
_VALUES: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "shell": _shell,
    "max-timeout": _max_timeout,
    "user": parse_identity,
    "umask": parse_umask,
}
_LISTS: Final[Mapping[str, tuple[Callable[[Any, str], str], str]]] = {
    "directories": (_absolute, '["/srv/jobs"]'),
    "secrets": (_secret, '["db-password", "api-*"]'),
    "environment": (_variable, '["LANG", "LC_*"]'),
    "job-environment": (_variable, '["LANG", "LC_*"]'),
}
