"""What a host lets its workers run: the rules of a policy, and what they say about one job.

Pure: where a program really lies is for policy/paths.py to find out, and comes in as names.

New rule? Also: KEYS, `parse_policy`, policy/guard.py, docs/how-to/policy.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.duration import format_duration, parse_duration_ms
from queuectl.job.loaders import covers, is_loader
from queuectl.job.nearest import nearest
from queuectl.job.newjob import PackedLimits
from queuectl.job.pattern import fits, fits_all
from queuectl.job.printable import printable
from queuectl.job.resources import CEILINGS, beyond, capped, parse_ceiling
from queuectl.job.secrets import Wanted
from queuectl.job.shown import cut, shown
from queuectl.job.user import HARMLESS, PATH, Account, Identity, parse_identity, parse_umask

_PLAIN: Final = (
    *("shell", "programs", "directories", "environment", "job-environment", "secrets", "max-timeout", "user", "umask"),
)
KEYS: Final = (*_PLAIN, *CEILINGS)
QUEUES: Final = "queues"
_OF_A_PROGRAM: Final = ("program", "args", "name")
_VARIABLE: Final = re.compile(r"[A-Za-z_*?][A-Za-z0-9_*?]*")
_SECRET: Final = re.compile(r"[A-Za-z0-9*?][A-Za-z0-9._:*?-]{0,127}")
_QUEUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

SHELLS: Final = frozenset({"sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "yash", "zsh"})


class Program(NamedTuple):
    """One that may run. `path` is absolute, the last name in it may hold wildcards; `args` None: any."""

    rule: str
    path: str
    args: tuple[str, ...] | None = None

    @property
    def directory(self) -> str:
        return self.path.rpartition("/")[0] or "/"

    @property
    def pattern(self) -> str:
        return self.path.rpartition("/")[2]


class Refusal(NamedTuple):
    """Which rule is against it, and why."""

    rule: str
    problem: str


class Rules(NamedTuple):
    """What holds for the jobs of a queue. None: anything goes. `names`: of each key that was said, what it is called in full."""

    shell: bool = True
    programs: tuple[Program, ...] | None = None
    directories: tuple[str, ...] | None = None
    environment: tuple[str, ...] | None = None
    job_environment: tuple[str, ...] | None = None
    secrets: tuple[str, ...] = ()
    max_timeout_ms: int | None = None
    user: Identity | None = None
    umask: int | None = None
    most: Mapping[str, int] = {}  # by resource, what a run may use; of nice, the least
    names: Mapping[str, str] = {}

    def name(self, key: str) -> str:
        return self.names.get(key, key)

    # ── what they say ───────────────────────────────────────────────────────────────────────────────────────────────

    def against_shell(self) -> Refusal | None:
        if self.shell:
            return None
        return Refusal(self.name("shell"), "no commands for a shell; give the program and its words one by one")

    def allow(
        self, names: Sequence[str], args: tuple[str, ...], *, real_directory: Callable[[str], str | None]
    ) -> tuple[str, str] | Refusal:
        """The rule that lets a program run, and the name under which it does. `names`: all that it has, the directories in
        them resolved, from the one that was asked for to the file itself. `real_directory` resolves that of a rule."""
        if self.programs is None:
            # Whoever is not to have a shell has not asked for it by another name either.
            shells = [name for name in names if not self.shell and name.rpartition("/")[2] in SHELLS]
            return Refusal(self.name("shell"), f"{cut(names[0])} is a shell") if shells else ("programs", names[0])
        near = None
        for program in self.programs:
            for name in names:
                directory, _, last = name.rpartition("/")
                if fits(program.pattern, last) and (directory or "/") == real_directory(program.directory):
                    if program.args is None or fits_all(program.args, args):
                        return program.rule, name
                    near = near or program
        if near is not None:
            return Refusal(near.rule, f"{cut(names[0])} may run, but not with these words")
        return Refusal(self.name("programs"), f"{cut(names[-1])} is not among them")

    def against_directory(self, real: str, *, real_directory: Callable[[str], str | None]) -> Refusal | None:
        if self.directories is None:
            return None
        for directory in self.directories:
            allowed = real_directory(directory)
            if allowed is not None and (real == allowed or real.startswith(allowed.rstrip("/") + "/")):
                return None
        return Refusal(self.name("directories"), f"{cut(real)} is in none of them")

    def against_variables(self, names: Iterable[str]) -> Refusal | None:
        """Of those that a job brings along."""
        allowed = self.job_environment
        if allowed is None:
            if self.programs is None:
                return None
            allowed = ()  # who may run one program only must not choose what that loads
        for name in names:
            if not covers(allowed, name):
                return Refusal(self.name("job-environment"), f"a job may not set {cut(name)}")
        return None

    def against_secrets(self, wanted: Iterable[Wanted]) -> Refusal | None:
        """None that is not listed: who writes a policy does not trust all who enqueue, and whoever gets a secret can print it."""
        for variable, entry in wanted:
            if not any(fits(pattern, entry) for pattern in self.secrets):
                return Refusal(self.name("secrets"), f"a job may not have the secret {cut(entry)}")
            is_free = self.programs is None and self.job_environment is None
            if not is_free and variable not in (self.job_environment or ()) and is_loader(variable):
                return Refusal(self.name("job-environment"), f"a job may not set {cut(variable)}")
        return None

    def against_timeout(self, asked_ms: int | None) -> Refusal | None:
        """Who asks for none gets the longest there is."""
        if asked_ms is None or self.max_timeout_ms is None or asked_ms <= self.max_timeout_ms:
            return None
        most = format_duration(self.max_timeout_ms)
        return Refusal(self.name("max-timeout"), f"a time limit of {format_duration(asked_ms)}, at most {most}")

    def capped(self, asked_ms: int | None) -> int | None:
        limits = [ms for ms in (asked_ms, self.max_timeout_ms) if ms is not None]
        return min(limits, default=None)

    def against_limits(self, asked: PackedLimits | None) -> Refusal | None:
        """As of timeouts."""
        found = beyond(asked, self.most)
        return None if found is None else Refusal(self.name(found[0]), found[1])

    def capped_limits(self, asked: PackedLimits | None) -> PackedLimits | None:
        return capped(asked, self.most)

    def passes(self, variable: str) -> bool:
        """Whether a job sees this variable of its worker."""
        return self.environment is None or any(fits(pattern, variable) for pattern in self.environment)

    def seen(self, variables: Mapping[str, str], account: Account | None) -> dict[str, str]:
        """What a job sees of the environment of its worker. One that runs as another user does not see what is root's, but for
        what is said here; the rest is as after a login of that user."""
        if account is None:
            return {name: value for name, value in variables.items() if self.passes(name)}
        rules = self if self.environment is not None else self._replace(environment=HARMLESS)
        return {"PATH": PATH, **rules.seen(variables, None), **account.variables}


class Policy(NamedTuple):
    general: Rules
    queues: Mapping[str, Rules]

    def of(self, queue: str) -> Rules:
        return self.queues.get(queue, self.general)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_policy(said: Mapping[str, Any], *, subject: str) -> Policy:
    """From the tables of a policy.toml. Raises InvalidInput or UnknownName, which name `subject`, the file."""
    general = {key: value for key, value in said.items() if key != QUEUES}
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
    return Policy(_rules(read), found)


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
            known = (*KEYS, QUEUES) if not where else KEYS
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
