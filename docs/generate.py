"""Writes the reference pages that the code itself can write: scripts/docs [--check]

Commands, settings, errors and transitions are read from where they are defined. What the code cannot know is in
words.py. Something new in the code without words there is an error, and so are words for what is gone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from inspect import cleandoc, getsource
from pathlib import Path
from pkgutil import walk_packages
from textwrap import wrap

import click

import queuectl
from docs import man, topics
from docs.words import COUNTS, ERRORS, IN_FORCE, NOT_OVER_HTTP, REFUSALS, STATES
from queuectl.cli.command import GLOBAL_OPTIONS, Command, LazyGroup
from queuectl.cli.commands.table import COMMANDS, root
from queuectl.cli.exits import exit_status
from queuectl.errors import QueuectlError
from queuectl.job.lifecycle import FINAL, TRANSITIONS, WAITING, Event, State
from queuectl.job.loaders import LOADERS, SHAPES
from queuectl.job.settings import KEYS, Key
from queuectl.web.api.operation import Operation
from queuectl.web.api.table import OPERATIONS, ROOT

WIDTH = 110
ROOT_DIRECTORY = Path(__file__).parent.parent
REFERENCE = Path(__file__).parent / "reference"
TOPICS = Path(queuectl.__path__[0]) / "cli" / "topics"
NOTICE = (
    "<!-- Made by docs/generate.py: scripts/docs makes it anew. Change the code or the generator, not this page. -->"
)


class Gap(Exception):
    """The code and the words about it do not fit."""


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    titles = list(titles)
    yield f"| {' | '.join(titles)} |"
    yield f"| {' | '.join('---' for _ in titles)} |"
    for row in rows:
        # A bar would end the cell, also inside of code.
        cells = [cell.replace("|", r"\|") for cell in row]
        yield f"| {' | '.join(cells)} |"


def prose(text: str) -> Iterator[str]:
    """A paragraph; code in it is not broken."""
    whole = re.sub(r"`[^`]+`", lambda match: match[0].replace(" ", "\0"), text)
    return (line.replace("\0", " ") for line in wrap(whole, WIDTH, break_on_hyphens=False))


def code(text: str) -> str:
    return f"`{text}`"


def words_for(names: Iterable[str], words: Mapping[str, str], *, where: str) -> Mapping[str, str]:
    names = set(names)
    if missing := names - set(words):
        raise Gap(f"{where}: no words for {', '.join(sorted(missing))}")
    if stale := set(words) - names:
        raise Gap(f"{where}: words for what does not exist: {', '.join(sorted(stale))}")
    return words


# ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────────


def commands() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "What `--help` says, on one page. `python -m queuectl` is the same program as `queuectl`."
    yield ""
    yield from prose(
        "An id may be cut to any unique beginning of it, and `last` is the job enqueued last. Durations are seconds or "
        "`500ms`, `90s`, `1.5h`, `1h30m`, `2d`, `1w`. How a command ends: [exit codes](exit-codes.md)."
    )
    yield ""
    yield "- [Options of every command](#options-of-every-command)"
    for path, _ in all_commands():
        yield f"{'  ' * (len(path) - 1)}- [`queuectl {' '.join(path)}`](#queuectl-{'-'.join(path)})"
    yield ""
    yield "## Options of every command"
    yield ""
    yield "Before or after the command's name; the rightmost wins."
    yield ""
    yield from options(GLOBAL_OPTIONS)
    yield ""
    yield from prose(
        "`NO_COLOR` in the environment and a pipe switch colours and progress bars off. `queuectl --version` says which one it is."
    )
    for path, command in all_commands():
        yield ""
        yield from command_page(path, command)


def all_commands() -> Iterator[tuple[tuple[str, ...], Command | LazyGroup]]:
    """Every command that --help names, with its words, groups before what is in them."""
    for name in (name for name, entry in COMMANDS.items() if not entry.hidden):
        yield from _below((name,), root)


def _below(path: tuple[str, ...], group: LazyGroup) -> Iterator[tuple[tuple[str, ...], Command | LazyGroup]]:
    found = group.get_command(click.Context(group), path[-1])
    assert isinstance(found, Command | LazyGroup)
    yield path, found
    if isinstance(found, LazyGroup):
        for name in found.list_commands(click.Context(found)):
            yield from _below((*path, name), found)


def command_page(path: tuple[str, ...], command: Command | LazyGroup) -> Iterator[str]:
    name = f"queuectl {' '.join(path)}"
    yield f"{'#' * (len(path) + 1)} {name}"
    yield ""
    for paragraph in re.split(r"\n\s*\n", cleandoc(command.help or "")):
        yield from prose(" ".join(paragraph.split()))
        yield ""
    if isinstance(command, LazyGroup):
        listed = [(sub, entry.help) for sub, entry in command.table.items() if not entry.hidden]
        rows = [(f"[`{name} {sub}`](#{name.replace(' ', '-')}-{sub})", about) for sub, about in listed]
        yield from table(("command", "does"), rows)
        yield ""
    else:
        context = click.Context(command, info_name=name)
        yield "```text"
        yield context.get_usage().removeprefix("Usage: ").replace("\n", " ")
        yield "```"
        yield ""
        own = [param for param in command.own_params if isinstance(param, click.Option) and not param.hidden]
        if own:
            yield from options(own)
            yield ""
    yield "```sh"
    yield from cleandoc(command.examples).splitlines()
    yield "```"


def options(params: Iterable[click.Option]) -> Iterator[str]:
    def row(option: click.Option) -> tuple[str, str]:
        record = option.get_help_record(click.Context(click.Command("x")))
        assert record is not None
        spelling, about = record
        return code(spelling), re.sub(r"(?<!\w)(-{1,2}[a-z][a-z-]*|QUEUECTL_\w+|\$QUEUECTL_\w+)", r"`\1`", about)

    return table(("option", "does"), map(row, params))


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def configuration() -> Iterator[str]:
    in_force = words_for((key.name for key in KEYS), IN_FORCE, where="settings")
    yield "# Settings"
    yield ""
    yield from prose(
        "Where a value comes from: a flag of the command, else `QUEUECTL_<KEY>` in the environment, else what `queuectl config "
        "set` has put into the store, for everybody who uses it, else the default. `queuectl config list` shows each with its origin."
    )
    yield ""
    yield from prose(
        "`max-retries` and `max_retries` are one key. Unknown keys and bad values are refused, with the nearest key and the "
        "accepted form; a bad value in the environment too, with the name of the variable. Keys of a newer version are left alone."
    )
    yield ""
    yield from table(
        ("key", "default", "decides"),
        ((f"[`{key.name}`](#{key.name})", code(key.text(key.default)), key.about) for key in KEYS),
    )
    for key in KEYS:
        yield ""
        yield from setting(key, in_force[key.name])
    yield ""
    yield "## Where things are"
    yield ""
    yield "Not settings, since they are needed to find them:"
    yield ""
    yield from table(
        ("variable", "flag", "says"),
        (
            ("`QUEUECTL_HOME`", "`--home`", "the [home](home.md); default `~/.queuectl`"),
            (
                "`QUEUECTL_DB`",
                "`--db`",
                (
                    "the store: a path, `sqlite:///path` or [`postgresql://…`](../how-to/use-postgresql.md#the-address); "
                    "default what `queuectl.toml` in the home names, else `queue.db` there"
                ),
            ),
            (
                "`QUEUECTL_HOST`",
                "",
                "the name of this machine, if not the one that the system has; machines that share a store need names of their own",
            ),
            ("`QUEUECTL_TOKEN`", "", "a token of your own for [`dashboard`](../how-to/http-api.md#who-may)"),
        ),
    )
    yield ""
    yield from prose(
        "`QUEUECTL_DEBUG=1` shows the traceback of an error that nobody foresaw. Other unknown `QUEUECTL_*` are ignored; what a job "
        "finds in its environment is on [its own page](environment.md)."
    )


def setting(key: Key, in_force: str) -> Iterator[str]:
    yield f"## {key.name}"
    yield ""
    yield f"{key.about[0].upper()}{key.about[1:]}."
    yield ""
    yield f"- default: {code(key.text(key.default))}"
    yield f"- accepts: {key.form}"
    if key.aliases:
        yield f"- also called: {', '.join(map(code, key.aliases))}"
    if key.name == "ageing":
        yield "- environment: none, it belongs to the store; see [priorities and ageing](../how-to/priorities-and-ageing.md)"
    else:
        yield f"- environment: {', '.join(map(code, key.variables))}"
    yield f"- a change holds for: {in_force}"


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def all_errors() -> Iterator[type[QueuectlError]]:
    """Every class of the tree, parents before children."""
    # They are known once their module is imported: the result must not depend on what somebody else has imported.
    for module in walk_packages(queuectl.__path__, "queuectl."):
        if not module.name.endswith(".__main__"):
            import_module(module.name)
    waiting: list[type[QueuectlError]] = [QueuectlError]
    while waiting:
        kind = waiting.pop(0)
        yield kind
        waiting[:0] = kinds_of(kind)


def kinds_of(kind: type[QueuectlError]) -> list[type[QueuectlError]]:
    """Right below it, in an order that does not depend on what was imported first."""
    below = [
        sub
        for sub in kind.__subclasses__()
        # Not those of a test, or of a program that builds on ours; nor those that only we tell apart.
        if sub.__module__.split(".")[0] == "queuectl" and "code" in vars(sub)
    ]
    return sorted(below, key=lambda sub: (sub.__module__ != QueuectlError.__module__, sub.__module__))


def status_of(kind: type[QueuectlError]) -> int:
    return exit_status(kind.__new__(kind))


def errors() -> Iterator[str]:
    kinds = list(all_errors())
    meaning = words_for((kind.code for kind in kinds), ERRORS, where="errors")
    yield "# Errors"
    yield ""
    yield from prose(
        "An error is one line of what and one line of what to do, on stderr. With `--json` it is "
        '`{"error": {"code", "message", "hint"}}`. The code is for programs and stays as it is; message and hint are for people and '
        "may change. In Python they are classes of `queuectl.errors`, but for the few that only the command line knows; `code`, `message` and "
        "`hint` are their attributes."
    )
    yield ""
    yield "What was refused has changed nothing, unless it says so."
    yield ""
    rows = [(code(kind.code), str(status_of(kind)), code(kind.__name__), meaning[kind.code]) for kind in kinds[1:]]
    yield from table(("code", "exit status", "class", "means"), rows)
    yield ""
    yield "## The tree"
    yield ""
    yield "Catch a branch to catch all that is in it."
    yield ""
    yield "```text"
    yield from _tree(QueuectlError, "", "")
    yield "```"
    yield ""
    yield "See also: [exit codes](exit-codes.md)."


def _tree(kind: type[QueuectlError], lead: str, rest: str) -> Iterator[str]:
    yield f"{lead}{kind.__name__}"
    below = kinds_of(kind)
    for at, sub in enumerate(below):
        is_last = at + 1 == len(below)
        yield from _tree(sub, f"{rest}{'└── ' if is_last else '├── '}", f"{rest}{'    ' if is_last else '│   '}")


# ── lifecycle ───────────────────────────────────────────────────────────────────────────────────────────────────────


def event_words() -> dict[str, str]:
    """The remark beside each event, where it is defined."""
    return dict(re.findall(r'^    [A-Z]+ = "([a-z]+)"  # (.+)$', getsource(Event), re.MULTILINE))


def lifecycle() -> Iterator[str]:
    states = words_for((state.value for state in State), STATES, where="states")
    events = words_for((event.value for event in Event), event_words(), where="events")
    yield "# The life of a job"
    yield ""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield "    [*] --> pending: enqueue"
    for (state, event), after in TRANSITIONS.items():
        yield f"    {state.value} --> {after.value}: {event.value}"
    yield "    completed --> [*]"
    yield "```"
    yield ""
    yield "## States"
    yield ""
    yield from table(
        ("state", "means", "is"),
        ((code(state.value), states[state.value], _kind_of(state)) for state in State),
    )
    yield ""
    yield "## Transitions"
    yield ""
    yield "All there are. Whatever is not in this table cannot happen to a job."
    yield ""
    yield from table(
        ("from", "event", "to", "because"),
        (
            (code(state.value), event.value, code(after.value), events[event.value])
            for (state, event), after in TRANSITIONS.items()
        ),
    )
    yield ""
    yield from cleandoc(COUNTS).splitlines()


def _kind_of(state: State) -> str:
    return "waiting" if state in WAITING else "final" if state in FINAL else "running"


# ── HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def refusals() -> set[str]:
    """The codes that web/ itself refuses with, by what its source says."""
    folder = Path(queuectl.__path__[0]) / "web"
    sources = "\n".join(path.read_text("utf-8") for path in sorted(folder.rglob("*.py")))
    named = re.findall(r'(?:Refused|document)\(\s*(?:status|HTTPStatus\.\w+),\s*"([a-z-]+)"', sources)
    return {*named, "not-found", "method-not-allowed"}  # made of the words of HTTP, see frame.py


def http() -> Iterator[str]:
    words_for(refusals(), {code: about for code, (_, about) in REFUSALS.items()}, where="refusals")
    yield "# HTTP API"
    yield ""
    yield from prose(
        f"What `queuectl dashboard` serves below `{ROOT}`; [how to use it](../how-to/http-api.md). The same as OpenAPI 3.1 is at "
        f"`{ROOT}/openapi.json`, and as a page at `{ROOT}/docs`. Objects are those of [JSON](json.md)."
    )
    yield ""
    tags: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        tags.setdefault(operation.tag, []).append(operation)
    for tag, operations in tags.items():
        yield f"## {tag[0].upper()}{tag[1:]}"
        yield ""
        rows = [(code(f"{one.method} {one.path}"), one.summary, _takes(one)) for one in operations]
        yield from table(("operation", "does", "takes"), rows)
        yield ""
    yield "## Beside the API"
    yield ""
    beside = [
        ("`GET /metrics`", "the same as `queuectl metrics --prometheus`; with a token"),
        ("`GET /healthz`", "`ok`, or 503 while the store cannot serve; open to all"),
    ]
    yield from table(("path", "is"), beside)
    yield ""
    yield "## Refusals"
    yield ""
    yield from prose(
        "Every refusal is `application/problem+json`: `type title status detail`, and of ours `code` and `hint`. What a command would exit "
        "with 2 for is 422; what there is not 404; what is refused as things are 409; a store that cannot serve 503; what was waited for "
        "in vain 504. The codes of these are on [their page](errors.md). HTTP itself adds:"
    )
    yield ""
    yield from table(
        ("code", "status", "means"), ((code(one), str(status), about) for one, (status, about) in REFUSALS.items())
    )
    yield ""
    yield "## What only the command line does"
    yield ""
    yield from table(("command", "because"), ((code(name), why) for name, why in NOT_OVER_HTTP.items()))


def _takes(operation: Operation) -> str:
    body = operation.body or {}
    fields = [name for part in (body, *body.get("allOf", ())) for name in part.get("properties", ())]
    named = [
        str(one["$ref"]).rpartition("/")[2]
        for one in (body, *body.get("allOf", ()), *body.get("oneOf", ()))
        if "$ref" in one
    ]
    named_params = (*operation.params, *operation.headers)
    return ", ".join([*(code(param.name) for param in named_params), *(code(name) for name in fields), *named])


# ── all of it ───────────────────────────────────────────────────────────────────────────────────────────────────────


def loader_variables() -> Iterator[str]:
    yield "# Variables that load code"
    yield ""
    yield from prose(
        "Programs read these environment variables and load or run other code because of them, or find another program or "
        "configuration. A job that may run one program only must not choose them. So no wildcard in `job-environment` of a "
        "[policy](../how-to/policy.md) covers them: a job may set one only if the policy names it in full. Upper and lower case "
        "do not count."
    )
    yield ""
    yield from table(
        ("program", "variables"),
        ((one.program, " ".join(map(code, one.names.split()))) for one in LOADERS),
    )
    yield ""
    yield "## By the form of the name"
    yield ""
    yield from prose(
        "No such list is complete. Variables of these forms are covered only by a wildcard that begins with a prefix of its own: "
        "`REPORT_*` covers `REPORT_PATH`, `*` and `R*` do not."
    )
    yield ""
    yield " ".join(map(code, SHAPES))


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "commands.md": commands,
    "configuration.md": configuration,
    "errors.md": errors,
    "http.md": http,
    "lifecycle.md": lifecycle,
    "loader-variables.md": loader_variables,
}


def page(name: str) -> str:
    return "\n".join([NOTICE, "", *PAGES[name]()]) + "\n"


def everything() -> dict[Path, str]:
    """All that is made, by where it lies. Topics come last: they are made of pages."""
    made = {REFERENCE / name: page(name) for name in PAGES}
    made |= {ROOT_DIRECTORY / "man" / name: text for name, text in man.pages().items()}
    return made


def readable() -> dict[Path, str]:
    return {TOPICS / f"{name}.txt": text for name, text in topics.topics().items()}


def stale(wanted: Mapping[Path, str], *, is_check: bool) -> Iterator[str]:
    """What is not as it should be, by its name from here; made so unless it is only checked."""
    folders = {path.parent for path in wanted} - {REFERENCE}
    for path in sorted({*wanted, *(old for folder in folders for old in folder.glob("*") if folder.is_dir())}):
        text = wanted.get(path)
        if text is not None and path.exists() and path.read_text("utf-8") == text:
            continue
        yield path.relative_to(ROOT_DIRECTORY).as_posix()
        if not is_check and text is None:
            path.unlink()
        elif not is_check and text is not None:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")


def main() -> int:
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        print("usage: scripts/docs [--check]", file=sys.stderr)
        return 2
    found = [*stale(everything(), is_check=is_check), *stale(readable(), is_check=is_check)]
    for name in found:
        print(f"{name} {'is not up to date: scripts/docs' if is_check else 'made anew'}")
    return 1 if found and is_check else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Gap as gap:
        sys.exit(f"docs: {gap}")
