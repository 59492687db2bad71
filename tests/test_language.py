"""Names, comments, messages and docs use the words of the trade. The list is in CONTRIBUTING.md, with what to write instead."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
from textual.binding import Binding

from queuectl import errors
from queuectl.alerts.operations import AlertRequest, parse_alert
from queuectl.cli.command import GLOBAL_OPTIONS, LazyGroup
from queuectl.cli.commands import root
from queuectl.client import Queue
from queuectl.errors import jobs as job_errors
from queuectl.errors import store as store_errors
from queuectl.store.open import open_store
from queuectl.store_threads import StorePools, WebSession
from queuectl.tui.app import Top
from queuectl.tui.job_screen import JobScreen
from queuectl.tui.screens import KEYS
from queuectl.web.api.streams import Feed
from queuectl.web.app import OPERATIONS, document, make_app
from queuectl.web.auth import AuthConfig, Right, Token, Tokens
from queuectl.web.pages.actions import VERBS
from queuectl.web.pages.routes import CHANGES, PAGES
from tests.factories import NO_POLICY
from tests.store.hands import BAD, Hands
from tests.tui.view import play

ROOT = Path(__file__).parent.parent
# Words without a good use here, as regular expressions for lower-case text in which identifiers are split at _ and at capitals.
BANNED = (
    "nobody",
    "somebody",
    "whoever",
    "whomever",
    "whom",
    "anew",
    "foundlings?",
    "heirs?",
    "farewells?",
    "bury|buries|buried|burying",
    "hush(?:es|ed)?",
    "keepers?",
    "relief",
    "tellers?",
    "lounges?",
    "uncharged",
    "in vain",
    "left away",
    "(?:leave|leaves|leaving)(?: \\w+){0,3} away",
    "made up if",
    "back to the line",
    "well said",
    "as things are",
    "in good hands",
    "(?:has|have|had) its say",
    "so (?:many|long)(?! (?:as|that)\\b)(?=[,.;:)]|$| (?:seconds|bytes|times|jobs|runs|slots|processes|descriptors|of)\\b)",
    "for want of",
    "call(?:s|ed|ing)? off",
    "give another chance",
    "the house",
)
FOLDERS = (".ci", "bench", "deploy", "docs", "man", "scripts", "src", "tests")
ENDINGS = ("", ".css", ".html", ".js", ".json", ".md", ".py", ".sh", ".sql", ".toml", ".txt", ".yml", ".1")
PATTERN = re.compile(r"\b(?:" + "|".join(BANNED) + r")\b", re.MULTILINE)
COME_IN_LABEL = re.compile(r">\s*come in\s*<", re.IGNORECASE)


def words(text: str) -> str:
    """The text in lower case, with identifiers split into their words: `has_heir` and `SupervisorGone` hold words, too."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text.replace("_", " ")).lower()


@cache
def files() -> list[Path]:
    """Return the files to check. This needs no git, so that it also works in an unpacked source distribution."""
    found = [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    return [
        path
        for path in found
        if path.suffix in ENDINGS and path.is_file() and "__pycache__" not in path.parts and path != Path(__file__)
    ]


def test_no_file_uses_a_banned_word() -> None:
    found = []
    for path in files():
        for number, line in enumerate(words(path.read_text("utf-8", "replace")).splitlines(), 1):
            found += [f"{path.relative_to(ROOT)}:{number}: {match[0]}" for match in PATTERN.finditer(line)]
    assert not found, "\n".join(found[:100])


# ── help ────────────────────────────────────────────────────────────────────────────────────────────────────────────

MAX_HELP_CHARS = 60
MAX_SENTENCE_WORDS = 30
# A line of help starts with a verb or a noun, and none of these is one.
NOT_A_START = frozenset(
    {"a", "all", "also", "an", "as", "for", "how", "if", "in", "it", "its", "no", "not", "of", "only"}
    | {"same", "so", "that", "the", "these", "this", "to", "what", "when", "where", "whether", "which", "while"}
    | {"who", "why", "with", "without"}
)


def commands(group: LazyGroup = root, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Return every command and group with its path."""
    yield path, group
    for name in group.table:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, LazyGroup):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


def help_lines() -> Iterator[tuple[str, str]]:
    """Return the help of every option, and the line of every command in the list of its group."""
    for option in GLOBAL_OPTIONS:
        yield option.opts[0], option.help or ""
    for path, command in commands():
        if isinstance(command, LazyGroup):
            yield from ((" ".join([*path, name]), entry.help) for name, entry in command.table.items())
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                yield " ".join([*path, param.opts[0]]), param.help or ""


def long_sentences(text: str) -> list[str]:
    sentences = re.split(r"(?<=[.:?])\s+|\n\n", " ".join(text.split()))
    return [sentence for sentence in sentences if len(sentence.split()) > MAX_SENTENCE_WORDS]


def test_help_is_short_and_starts_with_a_verb_or_a_noun() -> None:
    wrong = [
        f"{where}: {text}"
        for where, text in help_lines()
        if not 0 < len(text) <= MAX_HELP_CHARS
        or not text[0].isupper()
        or not text.endswith((".", "!"))
        or re.split(r"\W", text.lower())[0] in NOT_A_START
    ]
    assert not wrong, "\n".join(wrong)


def test_the_help_of_a_command_has_short_sentences_without_banned_words() -> None:
    wrong = []
    for path, command in commands():
        page = command.get_help(click.Context(command, info_name=" ".join(["queuectl", *path])))
        wrong += [f"{' '.join(path)}: {match[0]}" for match in PATTERN.finditer(words(page))]
        wrong += [f"{' '.join(path)}: {sentence}" for sentence in long_sentences(command.help or "")]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", [(), ("enqueue",), ("run",), ("cron", "add"), ("list",), ("worker", "start")])
def test_the_help_of_the_main_commands_fits_80_columns(path: tuple[str, ...]) -> None:
    command = dict(commands())[path]
    page = command.get_help(click.Context(command, info_name=" ".join(["queuectl", *path]), terminal_width=80))
    assert not [line for line in page.splitlines() if len(line) > 80]


# ── the HTTP API ────────────────────────────────────────────────────────────────────────────────────────────────────


def descriptions(part: Any, where: str) -> Iterator[tuple[str, str]]:
    """Return every text of a part of the OpenAPI document, with its place."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name in {"summary", "description"} and isinstance(value, str):
                yield where, value
            else:
                yield from descriptions(value, f"{where}/{name}")
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from descriptions(value, f"{where}/{number}")


def test_the_descriptions_of_the_http_api_have_short_sentences_without_banned_words() -> None:
    found = list(descriptions(document(), ""))
    assert len(found) > len(OPERATIONS)
    assert not [f"{where}: {text}" for where, text in found if PATTERN.search(words(text)) or long_sentences(text)]
    # A response may have the phrase of its status.
    assert not [f"{where}: {text}" for where, text in found if "/responses/20" not in where and not text.endswith(".")]


def test_the_summary_of_an_operation_starts_with_a_verb() -> None:
    assert not [one.summary for one in OPERATIONS if re.split(r"\W", one.summary.lower())[0] in NOT_A_START]


# ── the pages and the terminal UI ───────────────────────────────────────────────────────────────────────────────────

INLINE = frozenset({"a", "b", "br", "code", "em", "i", "kbd", "span", "strong", "time"})
SPOKEN = ("alt", "aria-label", "placeholder", "title")  # attributes that users see or hear


class PageText(HTMLParser):
    """The text of a page, in the pieces that a user sees as one, without logs and code."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.pieces = [""]
        self._is_code = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pieces += [value for name, value in attrs if name in SPOKEN and value]
        self._is_code = tag == "pre" or (self._is_code and tag in INLINE)
        if tag not in INLINE:
            self.pieces.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in INLINE:
            self._is_code = False
            self.pieces.append("")

    def handle_data(self, data: str) -> None:
        self.pieces[-1] += "" if self._is_code else data


def fill(home: Path) -> None:
    """Jobs in every state, a worker, and one of everything else that a page shows."""
    with Queue(home) as queue, closing(open_store(str(home))) as store:
        queue.enqueue("true", id="parent", delay="1h", tags=["nightly"], timeout="1m", memory="1GiB", env={"A": "b"})
        queue.enqueue("true", id="child", depends_on=["parent"])
        queue.enqueue_many([{"command": "true"}], batch="thumbs")
        queue.enqueue("true", id="gone", delay="1h")
        queue.cancel("gone")
        queue.enqueue("true", id="held", delay="1h")
        queue.hold("held")
        hands = Hands(store, home)
        for job_id, retries in (("broken", 0), ("retried", 3)):
            queue.enqueue("false", id=job_id, max_retries=retries, priority=9)
            hands.run(BAD)
        queue.enqueue("true", id="over", priority=9)
        hands.run()
        queue.enqueue("sleep 60", id="running", priority=9)
        hands.start(hands.claim_one())
        queue.set_queue("mail", concurrency=2, rate="10/m", paused=True)
        queue.enqueue("true", queue="mail")
        queue.schedules.add("nightly", "0 2 * * *", command="make backup", tz="Europe/Berlin")
        store.alerts.add(parse_alert(AlertRequest("deaths", dead=1, webhook="https://h.example/"), cwd="/", now_ms=1))
        store.samples.record()


JOBS = ("parent", "child", "gone", "held", "broken", "retried", "over", "running")
SHOWN = (
    *(path for path in PAGES if "{" not in path and path != "/act"),
    *(f"/jobs/{job}" for job in JOBS),
    *(f"/act?action={verb}&all=1" for verb in VERBS),
    "/act?action=hold&id=parent&id=child",
    "/act?action=hold",
    "/jobs/over?run=1&find=nothing",
    "/jobs/nothing",
    "/jobs?state=dead&queue=default",
    "/jobs?match=nothing",
    "/jobs?state=nothing",
    "/jobs?sort=duration",
    "/queues?name=nothing",
    "/?span=day",
    "/batches/thumbs",
    "/workers/w1",
    "/queues/mail",
    "/queues/queuectl.webhooks",
    "/queues/mail?span=day",
    "/cron/nightly",
    "/cron?match=nothing",
    "/alerts/deaths",
    "/audit?what=enqueue&who=nothing",
    "/nothing",
    "/api/v1/docs",
)
POSTED: tuple[tuple[str, Mapping[str, str]], ...] = (
    *((f"/jobs/parent/{verb}", {}) for verb in (*VERBS, "clone", "edit", "nothing")),
    *((f"/dlq/{verb}", {}) for verb in ("retry", "purge")),
    *((f"/cron/nightly/{verb}", {}) for verb in ("run", "remove", "pause", "resume")),
    ("/cron/+/add", {"name": "new", "schedule": "never", "command": "true"}),
    ("/cron/nightly/edit", {"schedule": "never"}),
    ("/cron/nightly/edit", {"schedule": "0 3 * * *"}),
    ("/cron/+/add", {"name": "new", "schedule": "every 1h", "command": "true", "tz": "Asia/Tokyo"}),
    ("/alerts/+/add", {"name": "late", "kind": "oldest", "threshold": "soon"}),
    ("/alerts/+/add", {"name": "late", "kind": "oldest", "threshold": "10m", "webhook": "https://h.example/"}),
    ("/alerts/deaths/edit", {"kind": "dead", "threshold": "many"}),
    *((f"/alerts/deaths/{verb}", {}) for verb in ("pause", "resume", "test", "remove")),
    ("/workers/w1/stop", {}),
    ("/workers/w1/stop", {"now": "1"}),
    ("/workers/w1/stop", {"confirmed": "1"}),
    ("/workers/nothing/stop", {}),
    ("/workers/w1/restart", {}),
    ("/queues/mail/pause", {}),
    ("/queues/mail/resume", {}),
    ("/queues/mail/set", {"concurrency": "1"}),
    ("/queues/mail/set", {"concurrency": "many"}),
    ("/queues/mail/move", {}),
    ("/queues/mail/move", {"to": "default"}),
    ("/queues/mail/move", {"to": "default", "confirmed": "1"}),
    ("/settings/timeout", {"value": "1m"}),
    ("/settings/timeout", {"value": "soon"}),
    ("/settings/timeout", {"unset": "1"}),
    ("/jobs/parent/edit", {"priority": "5"}),
    ("/jobs/broken/retry", {"confirmed": "1"}),
    ("/act", {"action": "hold", "id": "child"}),
    ("/act", {"action": "cancel", "all": "1", "queue": "mail"}),
    ("/enqueue", {"command": "true"}),
    ("/enqueue", {"command": "true", "priority": "much"}),
    ("/undo/nothing", {}),
)
TOKEN, READER = "a-token-of-the-tests", "a-token-that-only-reads"


async def render(home: Path) -> list[tuple[str, str]]:
    """Return every page that the dashboard renders, with the request that led to it."""
    pages = []
    requests: list[tuple[str, str, str, Mapping[str, str]]]
    tokens = Tokens([Token("own", Right.FULL, TOKEN), Token("viewer", Right.READ, READER)])
    with StorePools(lambda clock: WebSession(home, gate=NO_POLICY, clock=clock, trust_home=True)) as pools:
        app = make_app(pools, AuthConfig(tokens, 80, loopback=True, secure=False), Feed(pools.watching))
        http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://127.0.0.1",
            headers={"Accept": "text/html"},
            follow_redirects=True,
        )
        async with http:
            requests = [("GET", path, token, {}) for token in (TOKEN, READER) for path in SHOWN]
            requests += [("GET", "/", "a-wrong-token", {}), *(("POST", path, TOKEN, form) for path, form in POSTED)]
            for method, path, token, form in requests:
                headers = {"Authorization": f"Bearer {token}", "Origin": "http://127.0.0.1"}
                answer = await http.request(method, path, headers=headers, data=dict(form))
                pages.append((f"{method} {path} {dict(form)}", answer.text))
    return pages


def error_texts() -> Iterator[tuple[str, str]]:
    """Return the message and hint of every error with sample facts, and every hint that is given where one is raised."""
    for module in (errors, job_errors, store_errors):
        for name, kind in vars(module).items():
            if isinstance(kind, type) and issubclass(kind, errors.QueuectlError):
                for form in (kind.template, kind.default_hint):
                    yield name, form.format(*[3] * 9)
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                yield f"{path.name}:{node.value.lineno}", " … ".join(part for part in parts if isinstance(part, str))


def test_every_error_has_short_sentences_without_banned_words() -> None:
    found = list(error_texts())
    assert len(found) > 200
    assert not [(place, text) for place, text in found if PATTERN.search(words(text)) or long_sentences(text)]


def test_every_page_has_short_sentences_without_banned_words(tmp_path: Path) -> None:
    pages: list[tuple[str, str]] = []

    async def scene() -> None:
        pages.extend(await render(tmp_path / "empty"))
        await asyncio.to_thread(fill, tmp_path / "filled")
        pages.extend(await render(tmp_path / "filled"))

    play(scene)
    wrong = set()
    for where, page in pages:
        assert "<html" in page, where
        assert "Internal Server Error" not in page, where
        for piece in PageText(page).pieces:
            if PATTERN.search(words(piece)) or long_sentences(piece):
                wrong.add(f"{where}: {' '.join(piece.split())}")
    assert not wrong, "\n".join(sorted(wrong))


def test_every_route_of_a_page_is_rendered_by_that_test() -> None:
    def is_covered(route: str, paths: list[str]) -> bool:
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route))
        return any(re.fullmatch(pattern, path.partition("?")[0]) for path in paths)

    assert not [route for route in PAGES if not is_covered(route, list(SHOWN))]
    assert not [route for route in CHANGES if not is_covered(route, [path for path, _ in POSTED])]


def test_scripts_of_pages_show_short_sentences() -> None:
    scripts = [path for path in files() if path.suffix == ".js" and "static" in path.parts]
    assert scripts
    texts = [text for path in scripts for text in re.findall(r"[\"`]([^\"`\n]*)[\"`]", path.read_text("utf-8"))]
    assert not [text for text in texts if long_sentences(text)]


def test_the_keys_of_the_terminal_ui_are_described_in_one_line() -> None:
    bindings = [one for one in (*Top.BINDINGS, *JobScreen.BINDINGS) if isinstance(one, Binding)]
    texts = [*(about for _, about in KEYS), *(one.description for one in bindings)]
    assert not [text for text in texts if not 0 < len(text) <= MAX_HELP_CHARS or PATTERN.search(words(text))]


def test_no_label_invites_people_to_come_in() -> None:
    templates = [path for path in files() if path.suffix == ".html"]
    assert templates
    assert not [path for path in templates if COME_IN_LABEL.search(path.read_text("utf-8"))]


@pytest.mark.parametrize(
    "text",
    [
        "a keeper",
        "class KeeperGone:",
        "def has_heir():",
        "leave it away",
        "Called off.",
        "at most so many.",
        "WHOM",
    ],
)
def test_a_banned_word_is_found_in_names_and_prose(text: str) -> None:
    assert PATTERN.search(words(text))


@pytest.mark.parametrize("text", ["timekeeper", "their", "so long as it runs", "called often", "the household"])
def test_a_word_that_only_contains_one_is_fine(text: str) -> None:
    assert not PATTERN.search(words(text))
