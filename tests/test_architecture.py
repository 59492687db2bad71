"""The tree keeps its shape: layers, sizes, the addresses of effects, light imports. See docs/internals/design.md."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.program import environment

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "queuectl"
TESTS = ROOT / "tests"
DIALECTS = [path.parent for path in sorted(SOURCE.glob("store/*/sql"))]

# ── what is allowed ─────────────────────────────────────────────────────────────────────────────────────────────────
# A name ending in / is a folder and all that is in it.

MAY_IMPORT: Mapping[str, Mapping[str, str]] = {
    "subprocess": {
        "process/spawn.py": "starts jobs and helper commands",
        "process/client.py": "starts the supervisor",
        "worker/daemonize.py": "starts a worker in the background",
        "cli/commands/demo.py": "the demo runs real commands, as a user would type them",
        "service/manager.py": "runs systemctl and launchctl",
    },
    "time": {"clock.py": "the only caller of time"},
    "ctypes": {"process/linux.py": "keyctl and capset, which Python does not offer; in a child that changes its user"},
    "psutil": {"process/portable.py": "inspects processes where there is no /proc"},
    "threading": {
        "worker/store_retry.py": "keeps time limits and signals while the loop waits for the database",
        "web/api/streams.py": "hands over from such a thread to the loop, in bounded memory",
        "web/app.py": "tells such a thread that its client has left",
        "store_threads.py": "answers many clients and a screen with a synchronous core: a few threads, each with a store of its own",
    },
    "asyncio": {
        "web/": "the server: it holds many connections, and waits for all of them at once",
        "tui/": "the screen: it waits for keys and for the database at once",
        "store_threads.py": "hands work from an event loop to threads",
    },
    "starlette": {"web/": "an extra that `dashboard` alone loads"},
    "uvicorn": {"web/": "an extra that `dashboard` alone loads"},
    "textual": {"tui/": "an extra that `top` alone loads"},
    "sqlite3": {
        "store/sqlite/": "the only dialect that is SQLite",
        "store/foreign.py": "reads the files of other tools",
        "store/import_staging.py": "holds what may be more than memory does, in a temporary file",
    },
    "psycopg": {
        "store/postgres/": "the only dialect that is PostgreSQL",
        "store/open.py": "says how to install it where it is missing",
    },
    "signal": {
        "jobs/outcome.py": "the names of signals, for the error of a run; sends none",
        "jobs/resources.py": "the signals that tell of a limit; sends none",
        "process/": "sends them, and handles those of the supervisor",
        "maintenance/rescuer.py": "chooses the signal; process/ sends it",
        "maintenance/liveness.py": "chooses the signal; process/ sends it",
        "maintenance/lock_breaker.py": "chooses the signal; process/ sends it",
        "worker/executor.py": "chooses the signal; process/ sends it",
        "worker/signals.py": "handles TERM, INT, HUP and CHLD",
        "cli/commands/demo.py": "the demo removes its files before a signal ends it",
        "web/server.py": "handles SIGINT and SIGTERM: the first one stops the server gracefully",
        "tui/app.py": "gives the terminal back before TERM or HUP ends it",
    },
}

MAY_CALL: Mapping[str, Mapping[str, str]] = {
    "print": {},
    "sys.stdout": {"cli/": "the only printer"},
    "sys.stderr": {"cli/": "the only printer"},
    "sys.exit": {"cli/": "the only exiter"},
    "os._exit": {
        "cli/main.py": "exits without taking the interpreter down",
        "process/supervisor.py": "exits without taking the interpreter down",
        "process/spawn.py": "in a fork that cannot become its program",
    },
    "os.environ": {
        "config.py": "reads the environment for all",
        "cli/main.py": "QUEUECTL_DEBUG, when there is no App any more to ask",
        "process/system.py": "chosen once, when it is loaded, also in the supervisor",
    },
    "os.getenv": {},
    "os.getcwd": {"config.py": "reads the environment for all"},
    # A PID may have passed to another process; a descriptor of the process cannot.
    "os.kill": {
        "process/spawn.py": "continues a child that is not reaped, so that its PID is certainly its own",
        "process/portable.py": "where there are no pidfds: compares the start time right before",
    },
    "os.killpg": {
        "process/tree.py": "the group of a first process that was recorded, compared with its start time",
        "process/helper_command.py": "the group of a child that is not reaped, so that its PID is certainly its own",
    },
    "signal.pidfd_send_signal": {"process/linux.py": "compares the start time of a process before it sends anything"},
    "os.posix_spawn": {},
    "os.fork": {"process/spawn.py": "for another user: its rights are given up before the program is executed"},
    "os.system": {},
    "datetime.datetime.now": {},
    "datetime.datetime.utcnow": {},
    "datetime.datetime.today": {},
    "datetime.date.today": {},
}

# Every way to start a program. Where another module needs one: a program that a user names has to pass the gate (policy/gate.py), so
# take `Gate.admit` or `Gate.command`; a program of ours gets a line here.
STARTS: tuple[str, ...] = (
    "_posixsubprocess",
    "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell",
    "click.echo_via_pager",
    "click.edit",
    "click.launch",
    "concurrent.futures.ProcessPoolExecutor",
    "multiprocessing",
    *(f"os.exec{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *("os.fork", "os.forkpty", "os.popen", "os.posix_spawn", "os.posix_spawnp", "os.startfile", "os.system"),
    *(f"os.spawn{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    "pty",
    "queuectl.process.client.StartRequest",
    "queuectl.process.helper_command.HelperCommand",
    "queuectl.process.helper_command.HelperRunner",
    "queuectl.process.helper_command.run_helper",
    "queuectl.process.spawn.spawn",
    "subprocess",
    "webbrowser",
)
# By module: what it starts. GATED: what a user names, so the module has to ask the gate.
GATED = "what a user names: "
STARTERS: Mapping[str, str] = {
    "alerts/evaluator.py": GATED + "alert commands, where no worker is alive",
    "policy/gate.py": GATED + "this is the gate",
    "secrets/resolver.py": GATED + "the secret provider",
    "worker/launcher.py": GATED + "jobs",
    "cli/worker_setup.py": "queuectl itself, when a worker restarts; passes the gate to modules that start programs",
    "cli/commands/control.py": "the editor of the user at the terminal, as that user",
    "cli/commands/demo.py": "queuectl itself, for the demo",
    "service/manager.py": "systemctl and launchctl",
    "worker/daemonize.py": "queuectl itself, a worker in the background",
    "process/": "starts what it is told to: jobs by worker/launcher.py, commands by policy/gate.py",
}
# Who may say that something is permitted.
MAY_PERMIT: Mapping[str, str] = {
    "policy/evaluator.py": "the policy",
    "policy/gate.py": "where there is no policy",
    "cli/commands/policy.py": "shows the same, and starts nothing",
    "worker/launcher.py": "reads it",
}

# What `enqueue` must not load, because it does without: start-up is a feature.
HEAVY = {
    "asyncio",
    "cronsim",
    "ctypes",
    "email",
    "http",
    "importlib.resources",
    "jinja2",
    "logging",
    "psycopg",
    "queuectl.client",
    "queuectl.web",
    "rich",
    "socket",
    "starlette",
    "subprocess",
    "textual",
    "unittest",
    "uvicorn",
}

MAY_SLEEP: Mapping[str, str] = {"wait.py": "waits for a condition with a deadline"}

# ── reading the source ──────────────────────────────────────────────────────────────────────────────────────────────


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name that the module binds by an import, anywhere in it, with what it stands for."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
                    if not alias.asname:
                        yield alias.name, alias.name
            case ast.ImportFrom(module=str(module), level=0):
                yield from ((alias.asname or alias.name, f"{module}.{alias.name}") for alias in node.names)


def dotted(node: ast.expr) -> str | None:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute() if base := dotted(node.value):
            return f"{base}.{node.attr}"
    return None


def uses(tree: ast.Module) -> Iterator[str]:
    """The full name of everything that the module refers to, whatever it calls it: `from os import kill as k`."""
    bound = dict(imports(tree))
    yield from bound.values()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and (name := dotted(node)):
            first, _, rest = name.partition(".")
            yield ".".join(filter(None, (bound.get(first, first), rest)))


def is_within(name: str, outer: str) -> bool:
    return name == outer or name.startswith(outer + ".")


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def mentioning(name: str) -> list[Path]:
    """The modules in which the last part of it stands at all: whatever it is called, it is named once. Few are, and only those are read
    as programs, which takes a hundred times as long."""
    return [path for path in modules(SOURCE) if name.rpartition(".")[2] in text_of(path)]


@cache
def imported(path: Path) -> frozenset[str]:
    return frozenset(target for _, target in imports(parse(path)))


@cache
def used(path: Path) -> frozenset[str]:
    return frozenset(uses(parse(path)))


def importers(module: str) -> set[str]:
    return {
        path.relative_to(SOURCE).as_posix()
        for path in mentioning(module)
        if any(is_within(target, module) for target in imported(path))
    }


def users(function: str) -> set[str]:
    return {
        path.relative_to(SOURCE).as_posix()
        for path in mentioning(function)
        if any(is_within(name, function) for name in used(path))
    }


def covers(place: str, module: str) -> bool:
    return module == place or (place.endswith("/") and module.startswith(place))


def outside(found: set[str], places: Mapping[str, str]) -> set[str]:
    return {module for module in found if not any(covers(place, module) for place in places)}


def unused(places: Mapping[str, str], found: set[str]) -> set[str]:
    return {place for place in places if not any(covers(place, module) for module in found)}


# ── sizes and layers ────────────────────────────────────────────────────────────────────────────────────────────────


def test_most_modules_are_short_and_none_is_very_long() -> None:
    sizes = {path.relative_to(SOURCE).as_posix(): len(path.read_text("utf-8").splitlines()) for path in modules(SOURCE)}
    assert not {name: size for name, size in sizes.items() if size > 600}
    # Fewer modules are longer ones: 300 was the limit for 331 modules. See docs/internals/adr/0053-merge-small-modules.md.
    assert sorted(sizes.values())[len(sizes) * 9 // 10] < 375


def test_imports_between_layers_point_down_only() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_belongs_to_a_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    known = [name for layer in layers for name in re.split(r"\s*[|:]\s*", layer)]
    names = [".".join(("queuectl", *path.relative_to(SOURCE).with_suffix("").parts)) for path in modules(SOURCE)]
    assert not [
        name for name in names if not name.endswith("__init__") and not any(is_within(name, one) for one in known)
    ]


# ── effects at their address ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("module", MAY_IMPORT)
def test_an_effect_is_imported_only_at_its_address(module: str) -> None:
    found = importers(module)
    assert not outside(found, MAY_IMPORT[module]), f"{module} belongs to {list(MAY_IMPORT[module])}"
    assert not unused(MAY_IMPORT[module], found), "an allowance that no module needs"


@pytest.mark.parametrize("function", MAY_CALL)
def test_an_effect_is_used_only_at_its_address(function: str) -> None:
    found = users(function)
    assert not outside(found, MAY_CALL[function]), f"{function} belongs to {list(MAY_CALL[function]) or 'no module'}"
    assert not unused(MAY_CALL[function], found), "an allowance that no module needs"


@pytest.mark.parametrize(
    "text, name",
    [
        ("import os\nos.kill(1, 9)", "os.kill"),
        ("import os as system\nsystem.kill(1, 9)", "os.kill"),
        ("from os import kill\nkill(1, 9)", "os.kill"),
        ("from os import kill as end\nend(1, 9)", "os.kill"),
        ("import os.path\nos.environ['X']", "os.environ"),
        ("def f():\n    from datetime import datetime\n    datetime.now()", "datetime.datetime.now"),
        ("print('x')", "print"),
    ],
)
def test_an_effect_is_found_under_any_name(text: str, name: str) -> None:
    assert any(is_within(use, name) for use in uses(ast.parse(text)))


# ── what starts programs ────────────────────────────────────────────────────────────────────────────────────────────


def starters() -> set[str]:
    return set().union(*(users(name) for name in STARTS))


def test_every_module_that_starts_a_program_is_listed() -> None:
    found = starters()
    assert not outside(found, STARTERS), "see STARTS: a program that a user names passes the gate"
    assert not unused(STARTERS, found), "an allowance that no module needs"


@pytest.mark.parametrize("module", [name for name, what in STARTERS.items() if what.startswith(GATED)])
def test_a_module_that_starts_what_a_user_names_asks_the_gate(module: str) -> None:
    assert module == "policy/gate.py" or any(is_within(name, "queuectl.policy.gate") for name in used(SOURCE / module))


def test_only_the_policy_and_the_gate_permit_a_program() -> None:
    found = users("queuectl.policy.evaluator.Decision") | {"policy/evaluator.py"}
    assert not outside(found, MAY_PERMIT)
    assert not unused(MAY_PERMIT, found)


def test_only_the_gate_makes_a_helper_command() -> None:
    def makes(path: Path) -> bool:
        calls = (node.func for node in ast.walk(parse(path)) if isinstance(node, ast.Call))
        return any(dotted(call) == "HelperCommand" for call in calls)

    found = {path.relative_to(SOURCE).as_posix() for path in mentioning("HelperCommand") if makes(path)}
    assert found == {"policy/gate.py"}


# ── statements ──────────────────────────────────────────────────────────────────────────────────────────────────────


def is_statement(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and (dotted(node.value) or "").split(".")[-1] == "SQL"


RUN_BY_NAME = {"all", "one", "value", "execute", "executemany", "write_each", "defer_each"}  # methods of Transactions


def named_statements(dialect: Path) -> tuple[set[str], set[str]]:
    """The names in `SQL["name"]` and `tx.all("name")`, and every other text in the modules of this dialect and those it shares."""
    named, possible = set(), set()
    for path in (*modules(dialect), *(SOURCE / "store").glob("*.py")):
        for node in ast.walk(parse(path)):
            if is_statement(node) and isinstance(node.slice, ast.Constant):
                named.add(node.slice.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                first, target = node.args[0], ast.unparse(node.func.value)
                is_by_name = node.func.attr in RUN_BY_NAME and target.rpartition(".")[2] in {"tx", "_tx"}
                if is_by_name and isinstance(first, ast.Constant):
                    named.add(first.value)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                possible.add(node.value)
    return named, possible


def statements_in(*files: Path) -> dict[str, str]:
    """Every statement by name, with its comments."""
    parts = [part for file in files for part in file.read_text("utf-8").split("-- name: ")[1:]]
    found = {name: text for name, _, text in (part.partition("\n") for part in parts)}
    assert len(found) == len(parts), "a name is used twice"
    return found


COMMON = statements_in(SOURCE / "store" / "common.sql")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda path: path.name)
def test_every_statement_is_used_and_every_used_one_exists(dialect: Path) -> None:
    own = statements_in(*(dialect / "sql").glob("*.sql"))
    named, possible = named_statements(dialect)
    assert not own.keys() & COMMON.keys()
    assert not named - own.keys() - COMMON.keys()
    assert not own.keys() - named - possible
    assert not COMMON.keys() - named - possible


def test_a_statement_of_one_dialect_explains_what_the_other_does_instead() -> None:
    names = {"sqlite": "PostgreSQL", "postgres": "SQLite"}
    found = {path.name: statements_in(*(path / "sql").glob("*.sql")) for path in DIALECTS}
    silent = [
        f"{dialect}: {name}"
        for dialect, other in ((one, two) for one in names for two in names if one != two)
        for name, text in sorted(found[dialect].items())
        if name not in found[other] and names[dialect] not in text
    ]
    assert not silent


def test_a_statement_that_is_the_same_in_both_dialects_exists_once() -> None:
    def bare(text: str) -> str:
        code = " ".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
        return re.sub(r"%\((\w+)\)s", r":\1", " ".join(code.split()).replace("queuectl.", ""))

    sqlite, postgres = (
        statements_in(*(SOURCE / "store" / name / "sql").glob("*.sql")) for name in ("sqlite", "postgres")
    )
    assert not [name for name in sqlite if name in postgres and bare(sqlite[name]) == bare(postgres[name])]


# ── start-up ────────────────────────────────────────────────────────────────────────────────────────────────────────

RUN_AND_TELL = """
import json, sys
before = set(sys.modules)  # what site and its .pth files load is not of our making
from queuectl.cli.main import run
code = run(sys.argv[1:])
assert code == 0, code
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_enqueue_loads_nothing_that_it_does_not_need(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_TELL, "enqueue", "true"],
        env=environment(home),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "queuectl.store.sqlite.enqueue" in loaded
    assert not [name for name in loaded if any(is_within(name, heavy) for heavy in HEAVY)]


# ── tests ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_test_is_named_by_a_sentence() -> None:
    # Not parsed as a program, which takes much longer for all tests.
    test = re.compile(r"^\s*(?:async )?def (test_\w+)", re.MULTILINE)
    named = [
        (path.relative_to(TESTS).as_posix(), name) for path in modules(TESTS) for name in test.findall(text_of(path))
    ]
    assert not [(path, name) for path, name in named if len(name.split("_")) - 1 < 4]


def test_no_test_sleeps_for_a_fixed_time() -> None:
    suspects = [path for path in modules(TESTS) if "sleep" in text_of(path)]
    sleeping = [path for path in suspects if any(is_within(name, "time.sleep") for name in uses(parse(path)))]
    found = {path.relative_to(TESTS).as_posix() for path in sleeping}
    assert not found.difference(MAY_SLEEP), "wait for a condition: tests.wait.wait_until"
