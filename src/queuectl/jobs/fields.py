"""One parser for each field of a job: the value as it is stored, or InvalidInput.

`name` is the name that the user gave, for the message.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from queuectl.errors import InvalidInput
from queuectl.text import LAST_JOB, is_valid_id, is_valid_queue, is_valid_tag, short_repr
from queuectl.units import DURATION_HINT, MAX_DURATION_MS, parse_duration_ms, parse_time_ms

if TYPE_CHECKING:
    from queuectl.jobs.dependencies import Dependency

MAX_PRIORITY: Final = 1_000_000
MAX_RETRIES: Final = 1_000_000
MAX_KEY_CONCURRENCY: Final = 1_000_000
MAX_ARGUMENT_BYTES: Final = 131_071  # bytes; the kernel's limit includes the final NUL
MAX_ARGV_BYTES: Final = 1_048_576
MAX_TAGS: Final = 32
MAX_KEY_BYTES: Final = 256  # bytes
IF_EXISTS: Final = ("skip", "error", "replace")  # see jobs/unique.py
MAX_PARENTS: Final = 1000  # their IDs have to fit into one environment variable


def like(name: str, value: str, *, word: str | None = None) -> str:
    """An example for a hint: `word` after an option, `value` after a field of JSON."""
    return f"for example, {name} {word or value}" if name.startswith("--") else f'for example, "{name}": {value}'


def text(value: object, name: str, *, example: str) -> str:
    """A string without NUL and lone surrogates: it can be stored, printed and passed to the kernel."""
    if not isinstance(value, str):
        raise InvalidInput(name, f"expected a string, got {short_repr(value)}", hint=example)
    if "\0" in value:
        raise InvalidInput(name, "holds a NUL character", hint="remove it: arguments cannot contain NUL")
    if not value.isascii():
        size(value, name)
    return value


def size(value: str, name: str) -> int:
    """The number of bytes in UTF-8."""
    try:
        return len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError as error:
        problem = f"holds a lone surrogate: {short_repr(value)}"
        raise InvalidInput(name, problem, hint="use text that is UTF-8") from error


def integer(value: object, name: str, *, low: int, high: int) -> int:
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        form = f"an integer from {low} to {high}"
        raise InvalidInput(name, f"expected {form}, got {short_repr(value)}", hint=like(name, str(max(low, 1))))
    return int(value)


priority: Final = partial(integer, low=-MAX_PRIORITY, high=MAX_PRIORITY)
retries: Final = partial(integer, low=0, high=MAX_RETRIES)
places: Final = partial(integer, low=1, high=MAX_KEY_CONCURRENCY)


def command(value: object, name: str) -> str:
    # The common case first: a bulk enqueue calls this a million times.
    if (
        type(value) is str
        and 0 < len(value) <= MAX_ARGUMENT_BYTES
        and value.isascii()
        and value.isprintable()
        and not value.isspace()
    ):
        return value
    example = like(name, '"echo hi"', word="'echo hi'")
    given = text(value, name, example=f'{example}; for a list of arguments use "argv"')
    if not given or given.isspace():
        raise InvalidInput(name, "blank", hint=f"give a command, {example}")
    if len(given) > MAX_ARGUMENT_BYTES or (not given.isascii() and size(given, name) > MAX_ARGUMENT_BYTES):
        raise InvalidInput(
            name,
            f"{size(given, name)} bytes, and the system takes {MAX_ARGUMENT_BYTES}",
            hint="put it into a script and enqueue that",
        )
    return given


def argv(value: object, name: str) -> tuple[str, ...]:
    example = 'for example, "argv": ["echo", "hi"]'
    if not isinstance(value, (list, tuple)) or not value:
        raise InvalidInput(name, f"expected a list of strings, not empty, got {short_repr(value)}", hint=example)
    arguments = tuple(text(argument, f"{name}[{at}]", example=example) for at, argument in enumerate(value))
    if not arguments[0]:
        raise InvalidInput(f"{name}[0]", "the name of the program is empty", hint=example)
    sizes = [size(argument, name) for argument in arguments]
    if max(sizes) > MAX_ARGUMENT_BYTES:
        at = sizes.index(max(sizes))
        raise InvalidInput(
            f"{name}[{at}]", f"{sizes[at]} bytes, and the system takes {MAX_ARGUMENT_BYTES}", hint="pass it in a file"
        )
    if sum(sizes) > MAX_ARGV_BYTES:
        raise InvalidInput(name, f"{sum(sizes)} bytes in all, over {MAX_ARGV_BYTES}", hint="pass them in a file")
    return arguments


def job_id(value: object, name: str) -> str:
    if isinstance(value, str) and is_valid_id(value):
        return value
    problem = f"{LAST_JOB!r} means the job enqueued last" if value == LAST_JOB else f"not an id: {short_repr(value)}"
    raise InvalidInput(name, problem, hint="1 to 128 letters, digits and . _ : - beginning with a letter or digit")


def _name_of(kind: str) -> Callable[[object, str], str]:
    def parse(value: object, name: str) -> str:
        if isinstance(value, str) and is_valid_queue(value):
            return value
        hint = "1 to 64 letters, digits and . _ - beginning with a letter or digit"
        raise InvalidInput(name, f"not the name of {kind}: {short_repr(value)}", hint=hint)

    return parse


queue, schedule, batch, alert = map(_name_of, ("a queue", "a schedule", "a batch", "an alert"))


def flag(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidInput(name, f"expected true or false, got {short_repr(value)}", hint=like(name, "false"))


def backoff_base(value: object, name: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            base = float(value)
        except OverflowError:
            base = math.inf
        if 1 <= base < math.inf:
            return base
    raise InvalidInput(name, f"expected a number of at least 1, got {short_repr(value)}", hint=like(name, "2"))


def timeout(value: object, name: str) -> int | None:
    """0 means none."""
    return parse_duration_ms(value, subject=name) or None


def timeout_in_ms(value: object, name: str) -> int | None:
    if isinstance(value, float) and 0 <= value <= MAX_DURATION_MS:
        value = math.ceil(value)
    if isinstance(value, str):
        raise InvalidInput(name, f"expected a number of milliseconds, got {short_repr(value)}", hint=DURATION_TEXT_HINT)
    return integer(value, name, low=0, high=MAX_DURATION_MS) or None


DURATION_TEXT_HINT: Final = f'for a text use "timeout": {DURATION_HINT}'


def delay(value: object, name: str) -> int:
    return parse_duration_ms(value, subject=name)


def run_at(value: object, name: str) -> int:
    return parse_time_ms(value, subject=name, local=None)


def cwd(value: object, name: str) -> str:
    path = text(value, name, example=like(name, '"/srv/app"', word="/srv/app"))
    if not path:
        raise InvalidInput(name, "empty", hint="give a directory, or omit it for the current one")
    return path


def absolute(path: str, base: str) -> str:
    # Normalized as text: whether the directory exists is only known when the job runs.
    return posixpath.normpath(posixpath.join(base, path))


def env(value: object, name: str) -> dict[str, str] | None:
    example = like(name, '{"LANG": "C"}, strings only', word="LANG=C")
    if not isinstance(value, Mapping):
        raise InvalidInput(name, f"expected an object of strings, got {short_repr(value)}", hint=example)
    variables = {}
    for variable, content in value.items():
        text(variable, f"a name in {name}", example=example)
        if not variable or "=" in variable:
            raise InvalidInput(name, f"not the name of a variable: {short_repr(variable)}", hint=example)
        variables[variable] = text(content, f"{name}.{short_repr(variable)[1:-1]}", example=example)
    return variables or None


def tags(value: object, name: str) -> tuple[str, ...]:
    example = like(name, f'["nightly", "backup"], up to {MAX_TAGS} of them', word=f"nightly, up to {MAX_TAGS} times")
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(name, f"expected a list of names, got {short_repr(value)}", hint=example)
    for tag in value:
        if not isinstance(tag, str) or not is_valid_tag(tag):
            raise InvalidInput(
                name,
                f"not a tag: {short_repr(tag)}",
                hint="1 to 64 letters, digits and . _ : - beginning with a letter or digit",
            )
    kept = tuple(sorted(set(value)))
    if len(kept) > MAX_TAGS:
        raise InvalidInput(name, f"{len(kept)} tags, over {MAX_TAGS}", hint=example)
    return kept


def depends_on(value: object, name: str) -> tuple[Dependency, ...]:
    """In the order given, each parent once."""
    example = like(name, '["build", {"id": "test", "when": "ended"}]', word="build,test")
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(name, f"expected a list of ids, got {short_repr(value)}", hint=example)
    found: dict[str, Dependency] = {}
    for item in value:
        one = _dependency({"id": item} if isinstance(item, str) else item, name, example)
        if found.setdefault(one.id, one) != one:
            raise InvalidInput(name, f"waits for {one.id!r} in two ways", hint="name each parent once")
    if len(found) > MAX_PARENTS:
        hint = "add an intermediate job that waits for some of them"
        raise InvalidInput(name, f"{len(found):,} parents, over {MAX_PARENTS:,}", hint=hint)
    return tuple(found.values())


def _dependency(item: object, name: str, example: str) -> Dependency:
    # Imported here: most jobs have no dependencies, and `enqueue` has to start quickly.
    from queuectl.jobs.dependencies import Dependency, Need, Otherwise

    if not isinstance(item, Mapping):
        raise InvalidInput(name, f"expected an id or an object, got {short_repr(item)}", hint=example)
    for key in item:
        if key not in ("id", "when", "else"):
            raise InvalidInput(name, f"unknown field {short_repr(key)} of a parent", hint="known: id, when, else")
    parent = item.get("id")
    if parent is None:
        raise InvalidInput(name, "a parent without an id", hint=example)
    when, otherwise = item.get("when"), item.get("else")
    when = Need.COMPLETED if when is None else when
    otherwise = Otherwise.CANCEL if otherwise is None else otherwise
    if when not in list(Need):
        raise InvalidInput(f"{name}.when", f"unknown value: {short_repr(when)}", hint=f"one of: {', '.join(Need)}")
    if otherwise not in list(Otherwise):
        raise InvalidInput(
            f"{name}.else", f"unknown value: {short_repr(otherwise)}", hint=f"one of: {', '.join(Otherwise)}"
        )
    return Dependency(job_id(parent, name), Need(when), Otherwise(otherwise))


def _key(example: str) -> Callable[[object, str], str]:
    def parse(value: object, name: str) -> str:
        hint = like(name, f'"{example}"', word=example)
        key = text(value, name, example=hint)
        if not key:
            raise InvalidInput(name, "empty", hint=f"{hint}, or omit it")
        if (length := size(key, name)) > MAX_KEY_BYTES:
            raise InvalidInput(name, f"{length} bytes, over {MAX_KEY_BYTES}", hint="use a shorter one, or a hash of it")
        return key

    return parse


unique_key, key = map(_key, ("report-2026", "customer-7"))


def if_exists(value: object, name: str) -> str:
    if isinstance(value, str) and value in IF_EXISTS:
        return value
    raise InvalidInput(name, f"not known: {short_repr(value)}", hint=f"one of: {', '.join(IF_EXISTS)}")


def only_pending(value: object, name: str) -> None:
    if not isinstance(value, str) or value.lower() != "pending":
        _import_instead(name, f"expected 'pending', got {short_repr(value)}")


def only_zero(value: object, name: str) -> None:
    if integer(value, name, low=0, high=2**63 - 1) != 0:
        _import_instead(name, f"expected 0, got {short_repr(value)}")


def _import_instead(name: str, problem: str) -> None:
    raise InvalidInput(name, problem, hint="enqueue adds new jobs; use import for jobs with a history")


def ignored(_value: object, _name: str) -> None:
    """Accepted in records of other tools; queuectl sets it itself."""
