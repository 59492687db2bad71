"""What a host lets its workers run: the rules of a policy, and what they say about one job.

Pure: where a program really lies is for policy/paths.py to find out, and comes in as names.

New rule? Also: job/policytables.py, policy/guard.py, docs/how-to/policy.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.job.duration import format_duration
from queuectl.job.loaders import covers, is_loader, is_withheld
from queuectl.job.newjob import PackedLimits
from queuectl.job.pattern import fits, fits_all
from queuectl.job.resources import beyond, capped
from queuectl.job.secrets import Wanted
from queuectl.job.shown import cut
from queuectl.job.user import HARMLESS, PATH, Account, Identity

PROVIDER: Final = ""  # in the place of a queue: no queue has an empty name, so no job can get these rules
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
                why = ": it can load code, so no wildcard covers it" if is_withheld(allowed, name) else ""
                return Refusal(self.name("job-environment"), f"a job may not set {cut(name)}{why}")
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
    provider: Rules | None = None  # for the command of secrets.toml; None: as for all

    def of(self, queue: str) -> Rules:
        """`queue`: the name of a queue, or PROVIDER."""
        if queue == PROVIDER:
            return self.general if self.provider is None else self.provider
        return self.queues.get(queue, self.general)

    @property
    def all_rules(self) -> tuple[Rules, ...]:
        return (self.general, *self.queues.values(), self.of(PROVIDER))
