"""One function a field: the value as it is kept, or InvalidInput that says what was expected.

`name` is the spelling that was used, so that the message speaks of what the user wrote.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from queuectl.errors import InvalidInput
from queuectl.job.duration import HINT as DURATION_HINT
from queuectl.job.duration import LONGEST_MS, parse_duration_ms
from queuectl.job.names import LAST, is_valid_id, is_valid_queue, is_valid_tag
from queuectl.job.shown import shown

if TYPE_CHECKING:
    from queuectl.job.graph import Dependency

HIGHEST_PRIORITY: Final = 1_000_000
MOST_RETRIES: Final = 1_000_000
MOST_PLACES: Final = 1_000_000
LONGEST_ARGUMENT: Final = 131_071  # bytes; the kernel takes one more with the NUL that ends it
LONGEST_ARGV: Final = 1_048_576
MOST_TAGS: Final = 32
LONGEST_KEY: Final = 256  # bytes
IF_EXISTS: Final = ("skip", "error", "replace")  # what to do about a key that is taken, see job/unique.py
MOST_PARENTS: Final = 1000  # their ids have to fit into one variable of the environment


def like(name: str, value: str, *, word: str | None = None) -> str:
    """An example in the form that was used: `word` behind an option, `value` behind a field of JSON."""
    return f"like {name} {word or value}" if name.startswith("--") else f'like "{name}": {value}'


def text(value: object, name: str, *, example: str) -> str:
    """A string that can be stored, printed and handed to the system."""
    if not isinstance(value, str):
        raise InvalidInput(name, f"expected a string, got {shown(value)}", hint=example)
    if "\0" in value:
        raise InvalidInput(name, "holds a NUL character", hint="no program can be given one: take it out")
    if not value.isascii():
        size(value, name)
    return value


def size(value: str, name: str) -> int:
    """Bytes of UTF-8, which text with lone surrogates does not have."""
    try:
        return len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(name, f"holds a lone surrogate: {shown(value)}", hint="use text that is UTF-8") from error


def integer(value: object, name: str, *, low: int, high: int) -> int:
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        form = f"an integer from {low} to {high}"
        raise InvalidInput(name, f"expected {form}, got {shown(value)}", hint=like(name, str(max(low, 1))))
    return int(value)


def command(value: object, name: str) -> str:
    # First what nearly every one is: a bulk enqueue asks a million times.
    if (
        type(value) is str
        and 0 < len(value) <= LONGEST_ARGUMENT
        and value.isascii()
        and value.isprintable()
        and not value.isspace()
    ):
        return value
    example = like(name, '"echo hi"', word="'echo hi'")
    given = text(value, name, example=f'{example}; for a list of words use "argv"')
    if not given or given.isspace():
        raise InvalidInput(name, "blank", hint=f"say what to run, {example}")
    if len(given) > LONGEST_ARGUMENT or (not given.isascii() and size(given, name) > LONGEST_ARGUMENT):
        raise InvalidInput(
            name,
            f"{size(given, name)} bytes, and the system takes {LONGEST_ARGUMENT}",
            hint="put it into a script and enqueue that",
        )
    return given


def argv(value: object, name: str) -> tuple[str, ...]:
    example = 'like "argv": ["echo", "hi"]'
    if not isinstance(value, (list, tuple)) or not value:
        raise InvalidInput(name, f"expected a list of strings, not empty, got {shown(value)}", hint=example)
    words = tuple(text(word, f"{name}[{at}]", example=example) for at, word in enumerate(value))
    if not words[0]:
        raise InvalidInput(f"{name}[0]", "the name of the program is empty", hint=example)
    sizes = [size(word, name) for word in words]
    if max(sizes) > LONGEST_ARGUMENT:
        at = sizes.index(max(sizes))
        raise InvalidInput(
            f"{name}[{at}]", f"{sizes[at]} bytes, and the system takes {LONGEST_ARGUMENT}", hint="pass it in a file"
        )
    if sum(sizes) > LONGEST_ARGV:
        raise InvalidInput(name, f"{sum(sizes)} bytes in all, over {LONGEST_ARGV}", hint="pass them in a file")
    return words


def job_id(value: object, name: str) -> str:
    if isinstance(value, str) and is_valid_id(value):
        return value
    problem = f"{LAST!r} means the job enqueued last" if value == LAST else f"not an id: {shown(value)}"
    raise InvalidInput(name, problem, hint="1 to 128 letters, digits and . _ : - beginning with a letter or digit")


def queue(value: object, name: str) -> str:
    return _name_of("queue", value, name)


def schedule(value: object, name: str) -> str:
    return _name_of("schedule", value, name)


def batch(value: object, name: str) -> str:
    return _name_of("batch", value, name)


def _name_of(kind: str, value: object, name: str) -> str:
    if isinstance(value, str) and is_valid_queue(value):
        return value
    hint = "1 to 64 letters, digits and . _ - beginning with a letter or digit"
    raise InvalidInput(name, f"not the name of a {kind}: {shown(value)}", hint=hint)


def priority(value: object, name: str) -> int:
    return integer(value, name, low=-HIGHEST_PRIORITY, high=HIGHEST_PRIORITY)


def retries(value: object, name: str) -> int:
    return integer(value, name, low=0, high=MOST_RETRIES)


def backoff_base(value: object, name: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            base = float(value)
        except OverflowError:
            base = math.inf
        if 1 <= base < math.inf:
            return base
    raise InvalidInput(name, f"expected a number of at least 1, got {shown(value)}", hint=like(name, "2"))


def timeout(value: object, name: str) -> int | None:
    """0 means none."""
    return parse_duration_ms(value, subject=name) or None


def timeout_in_ms(value: object, name: str) -> int | None:
    if isinstance(value, float) and 0 <= value <= LONGEST_MS:
        value = math.ceil(value)
    if isinstance(value, str):
        raise InvalidInput(name, f"expected a number of milliseconds, got {shown(value)}", hint=DURATION_TEXT_HINT)
    return integer(value, name, low=0, high=LONGEST_MS) or None


DURATION_TEXT_HINT: Final = f'for a text use "timeout": {DURATION_HINT}'


def delay(value: object, name: str) -> int:
    return parse_duration_ms(value, subject=name)


def cwd(value: object, name: str) -> str:
    path = text(value, name, example=like(name, '"/srv/app"', word="/srv/app"))
    if not path:
        raise InvalidInput(name, "empty", hint="give a directory, or leave it away for the current one")
    return path


def absolute(path: str, base: str) -> str:
    # Normalised as text: which directory it is, and whether it is there, shows when the job runs.
    return posixpath.normpath(posixpath.join(base, path))


def env(value: object, name: str) -> dict[str, str] | None:
    example = like(name, '{"LANG": "C"}, strings only', word="LANG=C")
    if not isinstance(value, Mapping):
        raise InvalidInput(name, f"expected an object of strings, got {shown(value)}", hint=example)
    variables = {}
    for variable, content in value.items():
        text(variable, f"a name in {name}", example=example)
        if not variable or "=" in variable:
            raise InvalidInput(name, f"not the name of a variable: {shown(variable)}", hint=example)
        variables[variable] = text(content, f"{name}.{shown(variable)[1:-1]}", example=example)
    return variables or None


def tags(value: object, name: str) -> tuple[str, ...]:
    example = like(name, f'["nightly", "backup"], up to {MOST_TAGS} of them', word=f"nightly, up to {MOST_TAGS} times")
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(name, f"expected a list of names, got {shown(value)}", hint=example)
    for tag in value:
        if not isinstance(tag, str) or not is_valid_tag(tag):
            raise InvalidInput(
                name,
                f"not a tag: {shown(tag)}",
                hint="1 to 64 letters, digits and . _ : - beginning with a letter or digit",
            )
    kept = tuple(sorted(set(value)))
    if len(kept) > MOST_TAGS:
        raise InvalidInput(name, f"{len(kept)} tags, over {MOST_TAGS}", hint=example)
    return kept


def depends_on(value: object, name: str) -> tuple[Dependency, ...]:
    """In the order given, each parent once."""
    example = like(name, '["build", {"id": "test", "when": "ended"}]', word="build,test")
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(name, f"expected a list of ids, got {shown(value)}", hint=example)
    found: dict[str, Dependency] = {}
    for item in value:
        one = _dependency({"id": item} if isinstance(item, str) else item, name, example)
        if found.setdefault(one.id, one) != one:
            raise InvalidInput(name, f"waits for {one.id!r} in two ways", hint="name each parent once")
    if len(found) > MOST_PARENTS:
        hint = "let them wait for a job between, or that one for them"
        raise InvalidInput(name, f"{len(found):,} parents, over {MOST_PARENTS:,}", hint=hint)
    return tuple(found.values())


def _dependency(item: object, name: str, example: str) -> Dependency:
    # Here, since most jobs wait for nobody, and enqueue has to be quick.
    from queuectl.job.graph import Dependency, Need, Otherwise

    if not isinstance(item, Mapping):
        raise InvalidInput(name, f"expected an id or an object, got {shown(item)}", hint=example)
    for key in item:
        if key not in ("id", "when", "else"):
            raise InvalidInput(name, f"unknown field {shown(key)} of a parent", hint="known: id, when, else")
    parent = item.get("id")
    if parent is None:
        raise InvalidInput(name, "a parent without an id", hint=example)
    when, otherwise = item.get("when"), item.get("else")
    when = Need.COMPLETED if when is None else when
    otherwise = Otherwise.CANCEL if otherwise is None else otherwise
    if when not in list(Need):
        raise InvalidInput(f"{name}.when", f"not an end: {shown(when)}", hint=f"one of: {', '.join(Need)}")
    if otherwise not in list(Otherwise):
        raise InvalidInput(f"{name}.else", f"not a way on: {shown(otherwise)}", hint=f"one of: {', '.join(Otherwise)}")
    return Dependency(job_id(parent, name), Need(when), Otherwise(otherwise))


def unique_key(value: object, name: str) -> str:
    return _key(value, name, example=like(name, '"report-2026"', word="report-2026"))


def key(value: object, name: str) -> str:
    return _key(value, name, example=like(name, '"customer-7"', word="customer-7"))


def places(value: object, name: str) -> int:
    return integer(value, name, low=1, high=MOST_PLACES)


def _key(value: object, name: str, *, example: str) -> str:
    key = text(value, name, example=example)
    if not key:
        raise InvalidInput(name, "empty", hint=f"{example}, or leave it away")
    if size(key, name) > LONGEST_KEY:
        raise InvalidInput(
            name, f"{size(key, name)} bytes, over {LONGEST_KEY}", hint="use a shorter one, or a hash of it"
        )
    return key


def if_exists(value: object, name: str) -> str:
    if isinstance(value, str) and value in IF_EXISTS:
        return value
    raise InvalidInput(name, f"not known: {shown(value)}", hint=f"one of: {', '.join(IF_EXISTS)}")


def only_pending(value: object, name: str) -> None:
    if not isinstance(value, str) or value.lower() != "pending":
        _import_instead(name, f"expected 'pending', got {shown(value)}")


def only_zero(value: object, name: str) -> None:
    if integer(value, name, low=0, high=2**63 - 1) != 0:
        _import_instead(name, f"expected 0, got {shown(value)}")


def _import_instead(name: str, problem: str) -> None:
    raise InvalidInput(name, problem, hint="enqueue makes new jobs; for jobs with a past use import")


def ignored(_value: object, _name: str) -> None:
    """What the records of other tools carry along: we set it ourselves."""
