"""The rules of a policy: which programs, directories, variables, secrets and limits a job may have.

Pure: policy/evaluator.py resolves paths and passes them in as names.

To add a rule, also change policy/parser.py, policy/evaluator.py and docs/guides/policy.md.

A policy never rejects a job because of a variable that queuectl has set. A user can give a job a variable of the same name, so a
variable counts as set by queuectl only with a value that queuectl could have set, and those of alerts only in the queue of webhook
deliveries, to which users cannot add jobs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.alerts.rules import AlertEvent
from queuectl.errors import InvalidInput
from queuectl.jobs.resources import apply_ceilings, exceeded_ceiling
from queuectl.jobs.spec import PackedLimits
from queuectl.policy.env_denylist import is_allowed, is_withheld, loads_code
from queuectl.policy.pattern import matches, matches_all
from queuectl.secrets.rules import SecretRequest
from queuectl.text import QUEUE_PATTERN, WEBHOOK_QUEUE, is_valid_id, is_valid_queue, short_repr, truncate
from queuectl.units import format_duration
from queuectl.webhooks.rules import ALERT_EVENT, ORIGIN_VARIABLE, URL_VARIABLE, WebhookEvent

PROVIDER: Final = ""  # in place of a queue name: no queue has an empty name, so these rules apply to no job
SHELLS: Final = frozenset({"sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "yash", "zsh"})


class Program(NamedTuple):
    """A program that may run. `path` is absolute, its last component may contain wildcards. `args` None: any arguments."""

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
    """The rule that forbids it, and the reason."""

    rule: str
    problem: str


class Rules(NamedTuple):
    """The rules for the jobs of a queue. None: no restriction. `names`: the full name of each key that is set, for messages."""

    shell: bool = True
    programs: tuple[Program, ...] | None = None
    directories: tuple[str, ...] | None = None
    environment: tuple[str, ...] | None = None
    job_environment: tuple[str, ...] | None = None
    secrets: tuple[str, ...] = ()
    max_timeout_ms: int | None = None
    user: Identity | None = None
    umask: int | None = None
    most: Mapping[str, int] = {}  # by resource: the maximum for a run; for nice, the minimum
    names: Mapping[str, str] = {}

    def name(self, key: str) -> str:
        return self.names.get(key, key)

    def against_shell(self) -> Refusal | None:
        if self.shell:
            return None
        return Refusal(
            self.name("shell"), "shell commands are not allowed; give the program and its arguments separately"
        )

    def allow(
        self, names: Sequence[str], args: tuple[str, ...], *, real_directory: Callable[[str], str | None]
    ) -> tuple[str, str] | Refusal:
        """Return the rule that allows a program, and the name that matched. `names`: all names of the program, directories resolved,
        from the requested one to the file itself. `real_directory` resolves the directory of a rule."""
        if self.programs is None:
            # `shell = false` also forbids a shell as the program.
            shells = [name for name in names if not self.shell and name.rpartition("/")[2] in SHELLS]
            return Refusal(self.name("shell"), f"{truncate(names[0])} is a shell") if shells else ("programs", names[0])
        near = None
        for program in self.programs:
            for name in names:
                directory, _, last = name.rpartition("/")
                if matches(program.pattern, last) and (directory or "/") == real_directory(program.directory):
                    if program.args is None or matches_all(program.args, args):
                        return program.rule, name
                    near = near or program
        if near is not None:
            return Refusal(near.rule, f"{truncate(names[0])} may run, but not with these arguments")
        return Refusal(self.name("programs"), f"{truncate(names[-1])} is not in the list")

    def against_directory(self, real: str, *, real_directory: Callable[[str], str | None]) -> Refusal | None:
        if self.directories is None:
            return None
        for directory in self.directories:
            allowed = real_directory(directory)
            if allowed is not None and (real == allowed or real.startswith(allowed.rstrip("/") + "/")):
                return None
        return Refusal(self.name("directories"), f"{truncate(real)} is in none of them")

    def against_variables(self, names: Iterable[str]) -> Refusal | None:
        """Check the variables that a job sets."""
        allowed = self.job_environment
        if allowed is None:
            if self.programs is None:
                return None
            allowed = ()  # a job restricted to some programs must not choose the code that they load
        for name in names:
            if not is_allowed(allowed, name):
                why = ": it can load code, so no wildcard covers it" if is_withheld(allowed, name) else ""
                return Refusal(self.name("job-environment"), f"a job may not set {truncate(name)}{why}")
        return None

    def against_secrets(self, requests: Iterable[SecretRequest]) -> Refusal | None:
        """Refuse every secret that is not listed: a job can print the secrets that it gets."""
        for variable, entry in requests:
            if not any(matches(pattern, entry) for pattern in self.secrets):
                return Refusal(self.name("secrets"), f"a job may not have the secret {truncate(entry)}")
            is_free = self.programs is None and self.job_environment is None
            if not is_free and variable not in (self.job_environment or ()) and loads_code(variable):
                return Refusal(self.name("job-environment"), f"a job may not set {truncate(variable)}")
        return None

    def against_timeout(self, asked_ms: int | None) -> Refusal | None:
        """Check a time limit. A job without one gets the maximum, see `capped`."""
        if asked_ms is None or self.max_timeout_ms is None or asked_ms <= self.max_timeout_ms:
            return None
        most = format_duration(self.max_timeout_ms)
        return Refusal(self.name("max-timeout"), f"the time limit {format_duration(asked_ms)} exceeds {most}")

    def capped(self, asked_ms: int | None) -> int | None:
        limits = [ms for ms in (asked_ms, self.max_timeout_ms) if ms is not None]
        return min(limits, default=None)

    def against_limits(self, asked: PackedLimits | None) -> Refusal | None:
        """Check resource limits. A job without them gets the maximum, see `capped_limits`."""
        found = exceeded_ceiling(asked, self.most)
        return None if found is None else Refusal(self.name(found[0]), found[1])

    def capped_limits(self, asked: PackedLimits | None) -> PackedLimits | None:
        return apply_ceilings(asked, self.most)

    def passes(self, variable: str) -> bool:
        """Whether a job inherits this variable from its worker."""
        return self.environment is None or any(matches(pattern, variable) for pattern in self.environment)

    def seen(self, variables: Mapping[str, str], account: Account | None) -> dict[str, str]:
        """The variables that a job inherits from its worker. A job that runs as another user inherits only the listed ones, and gets
        the rest as a login of that user would set it."""
        if account is None:
            return {name: value for name, value in variables.items() if self.passes(name)}
        rules = self if self.environment is not None else self._replace(environment=DEFAULT_PASS_ENV)
        return {"PATH": DEFAULT_PATH, **rules.seen(variables, None), **account.variables}


class Policy(NamedTuple):
    general: Rules
    queues: Mapping[str, Rules]
    provider: Rules | None = None  # for the command of secrets.toml; None: the general rules

    def of(self, queue: str) -> Rules:
        """`queue`: the name of a queue, or PROVIDER."""
        if queue == PROVIDER:
            return self.general if self.provider is None else self.provider
        return self.queues.get(queue, self.general)

    @property
    def all_rules(self) -> tuple[Rules, ...]:
        return (self.general, *self.queues.values(), self.of(PROVIDER))


# The variables of root's environment that a job of another user gets by default.
DEFAULT_PASS_ENV: Final = ("LANG", "LANGUAGE", "LC_*", "TZ")
DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_NAME: Final = re.compile(r"[^\s:/\x00-\x1f\x7f-]([^\s:/\x00-\x1f\x7f]{0,254})")
_MAX_ID: Final = (1 << 32) - 2  # the next one means: unchanged
_USER_HINT: Final = 'like user = "deploy", "deploy:www-data", or by numbers "1500:1500"'


class Identity(NamedTuple):
    """A user as the policy names it, by name or number. `group` None: the main group of the user."""

    user: str
    group: str | None = None

    def __str__(self) -> str:
        return self.user if self.group is None else f"{self.user}:{self.group}"


class Account(NamedTuple):
    """A user of this host, see policy/accounts.py."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that a login sets."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}


def parse_identity(value: Any, about: str) -> Identity:
    """Raises InvalidInput."""
    # A number without quotes is valid, too, up to the largest ID.
    text = str(value) if type(value) is int and 0 <= value <= _MAX_ID else value
    if not isinstance(text, str):
        raise InvalidInput(about, f"expected a user, got {short_repr(value)}", hint=_USER_HINT)
    user, colon, group = text.partition(":")
    for name in (user, group) if colon else (user,):
        if not _NAME.fullmatch(name) or (name.isdecimal() and not is_number(name)):
            raise InvalidInput(about, f"not a user: {short_repr(text)}", hint=_USER_HINT)
    return Identity(user, group if colon else None)


def is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 11 and int(name) <= _MAX_ID


def parse_umask(value: Any, about: str) -> int:
    """Raises InvalidInput."""
    # Only as text: a 27 without quotes would be decimal.
    if not isinstance(value, str) or not re.fullmatch(r"0?[0-7]{3}", value):
        raise InvalidInput(
            about, f"expected three octal digits as text, got {short_repr(value)}", hint='like umask = "027"'
        )
    return int(value, 8)


_NUMBER: Final = re.compile(r"-?[0-9]{1,20}")
_QUEUE_NAME: Final = re.compile(QUEUE_PATTERN)
ALERT_VARIABLES: Final = frozenset(
    {
        "QUEUECTL_ALERT",
        *(f"QUEUECTL_ALERT_{name}" for name in ("ID", "STATE", "KIND", "VALUE", "THRESHOLD", "QUEUE", "AT", "TEXT")),
    }
)
DELIVERY_VARIABLES: Final = frozenset({URL_VARIABLE, ORIGIN_VARIABLE})
_GENERATED_VARIABLES: Final = {
    "QUEUECTL_ARRAY_INDEX": _NUMBER,
    "QUEUECTL_BATCH": _QUEUE_NAME,
    **{f"QUEUECTL_BATCH_{name}": _NUMBER for name in ("JOBS", "COMPLETED", "DEAD", "CANCELLED")},
}
# The worker sets these for every run: a value that the job brings along never reaches its process.
_OVERRIDDEN: Final = frozenset(
    f"QUEUECTL_{name}"
    for name in ("HOME", "WORKER", "JOB_ID", "RUN", "ATTEMPT", "QUEUE", "SLOT", "PARENTS", "PARENT_LOGS")
)


def is_delivery(arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether these are the arguments and variables of a delivery, exactly as store/webhook_outbox.py and store/alerts.py make them."""
    if len(arguments) != 3:
        return False
    what, subject, detail = arguments
    if what == ALERT_EVENT:
        return (
            is_valid_queue(subject)
            and detail in list(AlertEvent)
            and env.keys() <= ALERT_VARIABLES | DELIVERY_VARIABLES
        )
    is_run = detail.isascii() and detail.isdecimal()
    return what in list(WebhookEvent) and is_valid_id(subject) and is_run and env.keys() <= DELIVERY_VARIABLES


def chosen_by_job(queue: str, env: Mapping[str, str]) -> list[str]:
    """The names of the variables that the job itself brings along."""
    return [name for name, value in env.items() if not _is_set_by_queuectl(queue, name, value)]


def _is_set_by_queuectl(queue: str, name: str, value: str) -> bool:
    if name in _OVERRIDDEN:
        return True
    if queue == WEBHOOK_QUEUE and name in ALERT_VARIABLES:
        return True
    form = _GENERATED_VARIABLES.get(name)
    return form is not None and form.fullmatch(value) is not None
