"""Attacks on the server: authentication, origins, slow clients, huge requests, leaks."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from queuectl import store_threads
from queuectl.web import middleware, server
from queuectl.web.api.operation import Operation
from queuectl.web.app import OPERATIONS
from queuectl.web.auth import INVALID_CREDENTIALS, Right, Token, Tokens, read_token_file
from tests.program import Program
from tests.wait import wait_until
from tests.web.server import API, FULL, READ, Raw, Server, is_closed, read_answer

CHANGES = [one for one in OPERATIONS if one.changes]
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>"
SECRET = "marker-of-an-environment"


def name(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def path_of(operation: Operation) -> str:
    return API + operation.path.replace("{id}", "some").replace("{name}", "some").replace("{key}", "timeout")


def problem(answer: Raw | httpx.Response, status: int, code: str) -> dict[str, Any]:
    """What an answer says that refuses, as every refusal has to look."""
    given = answer.status if isinstance(answer, Raw) else answer.status_code
    said: dict[str, Any] = answer.json if isinstance(answer, Raw) else answer.json()
    assert (given, said["code"]) == (status, code), said
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert said["status"] == status
    assert said["detail"]
    assert said["hint"]
    return said


@pytest.fixture(scope="module")
def marked(server: Server) -> str:
    """A job with markup in every field that takes text, and a secret in its environment."""
    fields = {"command": f"echo {MARKUP}", "cwd": f"/{MARKUP}", "unique_key": MARKUP}
    job: dict[str, Any] = server.post("/jobs", {**fields, "env": {"MARK": SECRET}, "id": "marked"}, status=201)
    server.post(
        "/cron",
        {"name": "marked", "schedule": "0 2 * * *", "command": MARKUP, "env": {"MARK": SECRET}},
        status=201,
    )
    server.post("/jobs/many", {"jobs": [{"command": "true"}], "batch": "marked", "on_complete": MARKUP}, status=201)
    return str(job["id"])


# ── without a token, or with a wrong one ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("operation", OPERATIONS, ids=name)
def test_every_operation_requires_a_token(server: Server, operation: Operation) -> None:
    answer = server.send(f"{operation.method} {path_of(operation)} HTTP/1.1", token=None)
    problem(answer, 401, "no-token")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/openapi.json", "/api/v1/docs", "/api/v1/nothing", "/nothing"])
def test_without_a_token_nothing_is_returned(server: Server, path: str) -> None:
    problem(server.send(f"GET {path} HTTP/1.1", token=None), 401, "no-token")


@pytest.mark.parametrize("token", ["", "x", FULL[:-1], FULL + "x", FULL.upper(), "\xff" * 20, "x" * 4000])
def test_a_wrong_token_is_none(server: Server, token: str) -> None:
    said = problem(server.send(f"GET {API}/status HTTP/1.1", token=token), 401, "no-token")
    assert said["detail"] == (INVALID_CREDENTIALS if token else "a token is required")


@pytest.mark.parametrize("given", [f"Basic {FULL}", FULL, f"Bearer{FULL}", f"Token {FULL}"])
def test_a_token_counts_only_as_a_bearer_token(server: Server, given: str) -> None:
    problem(server.send(f"GET {API}/status HTTP/1.1", {"Authorization": given}, token=None), 401, "no-token")


@pytest.mark.parametrize("path", [f"{API}/status", f"{API}/openapi.json", "/metrics"])
def test_the_address_of_the_api_is_no_place_for_a_token(server: Server, path: str) -> None:
    answer = server.send(f"GET {path}?token={FULL} HTTP/1.1", token=None)
    problem(answer, 401, "no-token")
    assert "set-cookie" not in answer.headers


def test_a_cookie_cannot_be_made_of_the_token_itself(server: Server) -> None:
    cookie = f"queuectl-{server.port}={FULL}"
    problem(server.send(f"GET {API}/status HTTP/1.1", {"Cookie": cookie}, token=None), 401, "no-token")


def test_a_wrong_bearer_token_is_not_made_good_by_a_cookie(server: Server) -> None:
    answer = server.send(f"GET {API}/status HTTP/1.1", {"Cookie": cookie_of(server)}, token="wrong-token-of-the-tests")
    problem(answer, 401, "no-token")


def test_every_token_is_compared_with_all_and_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    tokens = Tokens([Token(str(number), Right.FULL, f"token-{number:010}") for number in range(3)])
    monkeypatch.setattr("hmac.compare_digest", lambda *two: compared.append(two) or two[0] == two[1])
    assert tokens.find("token-0000000000") is not None
    assert tokens.find("x") is None
    assert tokens.find_cookie("x") is None
    assert len(compared) == 9
    assert {len(part) for two in compared for part in two} == {32}  # digests: not even the length shows


# ── read-only tokens ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("operation", CHANGES, ids=name)
def test_a_read_only_token_changes_nothing(server: Server, operation: Operation) -> None:
    answer = server.send(f"{operation.method} {path_of(operation)} HTTP/1.1", token=READ)
    problem(answer, 403, "read-only")


def test_a_read_only_token_can_read(server: Server) -> None:
    with server.client(READ) as reader:
        assert reader.get("/status").status_code == 200


# ── other origins ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("operation", OPERATIONS, ids=name)
def test_no_page_of_another_origin_gets_anything(server: Server, operation: Operation) -> None:
    line = f"{operation.method} {path_of(operation)} HTTP/1.1"
    problem(server.send(line, {"Origin": "https://evil.example"}), 403, "foreign-origin")


@pytest.mark.parametrize(
    "origin", ["null", "http://127.0.0.1", "https://127.0.0.1:{port}", "http://localhost:{port}", ""]
)
def test_an_origin_that_is_only_nearly_ours_is_foreign(server: Server, origin: str) -> None:
    headers = {"Origin": origin.format(port=server.port)}
    problem(server.send(f"GET {API}/status HTTP/1.1", headers), 403, "foreign-origin")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_cross_site_request_of_a_browser_is_refused(server: Server, site: str) -> None:
    # Without Origin, as for an image: the cookie comes along from another port of the same host.
    headers = {"Cookie": cookie_of(server), "Sec-Fetch-Site": site}
    problem(server.send(f"GET {API}/status HTTP/1.1", headers, token=None), 403, "foreign-origin")


def test_a_change_by_cookie_has_to_say_where_it_comes_from(server: Server) -> None:
    headers = {"Cookie": cookie_of(server)}
    problem(server.send(f"POST {API}/queues/some/pause HTTP/1.1", headers, token=None), 403, "foreign-origin")
    headers |= {"Origin": server.url}
    assert server.send(f"POST {API}/queues/some/resume HTTP/1.1", headers, token=None).status == 200


def test_a_preflight_of_another_origin_is_not_allowed_anything(server: Server) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = server.send(f"OPTIONS {API}/jobs HTTP/1.1", headers, token=None)
    problem(answer, 403, "foreign-origin")
    assert not [name for name in answer.headers if name.startswith("access-control")]


# ── other hosts: DNS rebinding ──────────────────────────────────────────────────────────────────────────────────────

FOREIGN = [
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.:{port}", "user@127.0.0.1:{port}",
    "127.0.0.1:{port}@evil.example", "127.0.0.1:{port}.evil.example", "127.0.0.1.evil.example:{port}", "0.0.0.0:{port}",
    "10.0.0.1:{port}", "[::ffff:10.0.0.1]:{port}", "", "127.0.0.1:{port}/", "127.0.0.1:{port}?x", "127.0.0.1:{port}#x",
    "127.0.0.1:٣", "[", "127.0.0.1:{port},evil.example",
]  # fmt: skip


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/healthz", "/api/v1/status", "/?token=" + FULL])
def test_a_request_for_another_host_is_refused(server: Server, host: str, path: str) -> None:
    said = host.format(port=server.port).encode().decode("latin-1")
    problem(server.send(f"GET {path} HTTP/1.1", {"Host": said}), 421, "foreign-host")


@pytest.mark.parametrize("host", ["LOCALHOST:{port}", "localhost:{port}", "127.0.0.2:{port}", "[::1]:{port}"])
def test_every_name_of_the_loopback_is_ours(server: Server, host: str) -> None:
    assert server.send("GET /healthz HTTP/1.1", {"Host": host.format(port=server.port)}).status == 200


def test_two_hosts_are_none(server: Server) -> None:
    hosts = [("Host", server.host), ("Host", "evil.example")]
    assert server.send("GET /healthz HTTP/1.1", hosts).status in {400, 421}


def test_a_request_target_that_names_another_host_leads_nowhere(server: Server) -> None:
    assert server.send(f"GET http://evil.example{API}/status HTTP/1.1").status == 404
    assert server.send("CONNECT evil.example:443 HTTP/1.1").status in {404, 405}


# ── paths and methods ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    [
        "/static/../pages.py", "/static/%2e%2e/pages.py", "/static/..%2fpages.py", "/static/%2e%2e%2f%2e%2e%2fapp.py",
        "/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/..\\pages.py", "/static/%00", "/static/templates",
    ],
)  # fmt: skip
def test_nothing_beside_the_static_files_is_served(server: Server, path: str) -> None:
    answer = server.send(f"GET {path} HTTP/1.1")
    assert answer.status in {404, 405}
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "bad", ["..%2f..%2fetc%2fpasswd", "%2e%2e", "%00", "a%00b", "%ff%fe", "%0d%0aX-Bad:%20yes", "x" * 9000]
)
@pytest.mark.parametrize("path", ["/jobs/{}", "/jobs/{}/logs", "/cron/{}", "/batches/{}", "/config/{}", "/dlq/{}"])
def test_an_id_that_is_none_is_not_found_and_does_no_harm(server: Server, path: str, bad: str) -> None:
    answer = server.send(f"GET {API}{path.format(bad)} HTTP/1.1")
    assert answer.status in {404, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    assert "x-bad" not in answer.headers


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "BREW"])
def test_a_method_that_a_path_does_not_have_is_refused_with_those_it_has(server: Server, method: str) -> None:
    answer = server.send(f"{method} {API}/jobs HTTP/1.1")
    problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "GET, HEAD, POST"


def test_a_stream_does_not_answer_head(server: Server) -> None:
    assert server.send(f"HEAD {API}/events HTTP/1.1").status == 405
    assert server.send(f"HEAD {API}/status HTTP/1.1").body == b""


def test_no_path_is_taken_for_another_with_a_slash_at_its_end(server: Server) -> None:
    problem(server.send(f"GET {API}/jobs/ HTTP/1.1"), 404, "not-found")


# ── bodies ──────────────────────────────────────────────────────────────────────────────────────────────────────────

JSON = ("Content-Type", "application/json")


def post(server: Server, data: bytes, *headers: tuple[str, str], length: int | None = None) -> Raw:
    said = ("Content-Length", str(len(data) if length is None else length))
    return server.send(f"POST {API}/jobs HTTP/1.1", [*(headers or [JSON]), said], data)


def test_a_body_with_a_large_content_length_is_not_read(server: Server) -> None:
    answer = post(server, b"{", length=middleware.MAX_BODY_BYTES + 1)
    problem(answer, 413, "too-large")


def test_a_body_that_does_not_say_how_large_it_is_is_read_up_to_the_limit(server: Server) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    headers = [JSON, ("Transfer-Encoding", "chunked")]
    answer = server.send(f"POST {API}/jobs HTTP/1.1", headers, chunk * (middleware.MAX_BODY_BYTES // 0x10000 + 2))
    assert answer.status in {0, 413}  # 0: it hung up while we were still talking
    if answer.status:
        problem(answer, 413, "too-large")


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000, b'{"a":' * 100_000, b'{"command": "true", "priority": ' + b"9" * 100_000 + b"}",
        b'{"command": "true", "timeout": 1e999}', b'{"command": "true", "timeout": NaN}',
        b'{"command": "true", "command": "false"}', b'{"command": "\\ud800"}', b'{"command": "\xff"}', b'{"command": "true"} x',
        b"\xef\xbb\xbf{}", b"null", b"1", b'"x"', b'{"command": "a\\u0000b"}', b'{"__proto__": {}}', b'{"command": {"$gt": ""}}',
    ],
    ids=lambda data: data[:24].decode("ascii", "replace"),
)  # fmt: skip
def test_json_that_would_surprise_later_is_refused(server: Server, data: bytes) -> None:
    answer = post(server, data)
    assert answer.status == 422, answer
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_a_body_that_a_form_could_send_is_refused(server: Server, kind: str) -> None:
    problem(post(server, b'{"command": "true"}', ("Content-Type", kind)), 415, "not-json")


def test_a_body_that_ends_early_adds_nothing(server: Server) -> None:
    before = server.get("/status")["total"]
    with server.connect() as wire:
        head = f"POST {API}/jobs HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {FULL}\r\n"
        wire.sendall(
            f'{head}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"command": "true"}}'.encode()
        )
    assert server.get("/status")["total"] == before


def test_a_request_smuggled_behind_another_is_not_heard(server: Server) -> None:
    inner = f"POST {API}/queues/smuggled/pause HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {FULL}\r\n\r\n"
    both = [JSON, ("Content-Length", "4"), ("Transfer-Encoding", "chunked")]
    server.send(f"POST {API}/jobs HTTP/1.1", both, b"0\r\n\r\n" + inner.encode())
    two = [JSON, ("Content-Length", "0"), ("Content-Length", str(len(inner)))]
    assert server.send(f"POST {API}/jobs HTTP/1.1", two, inner.encode()).status == 400
    odd = [JSON, ("Transfer-Encoding", "xchunked")]
    assert server.send(f"POST {API}/jobs HTTP/1.1", odd, b"0\r\n\r\n").status in {400, 501}
    assert not server.get("/queues/smuggled")["paused"]


# ── slow and many ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "beginning", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"\r\n\r\n\r\n"], ids=["nothing", "head", "blank"]
)
def test_a_client_that_sends_slowly_is_disconnected(hasty: Server, beginning: bytes) -> None:
    with hasty.connect() as wire:
        wire.sendall(beginning)
        wait_until(lambda: is_closed(wire), timeout=20, what="the server to hang up")


def test_a_client_that_sends_slowly_after_a_request_is_disconnected(hasty: Server) -> None:
    with hasty.connect() as wire:
        wire.sendall(f"GET /healthz HTTP/1.1\r\nHost: {hasty.host}\r\n\r\nGET /hea".encode())
        assert wire.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: is_closed(wire), timeout=20, what="the server to hang up")


def test_a_body_that_takes_too_long_is_refused(hasty: Server) -> None:
    with hasty.connect() as wire:
        head = f"POST {API}/jobs HTTP/1.1\r\nHost: {hasty.host}\r\nAuthorization: Bearer {FULL}\r\n"
        wire.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{{".encode())
        problem(read_answer(wire), 408, "too-slow")


def test_a_client_that_reads_nothing_loses_its_thread(hasty: Server, hasty_program: Program) -> None:
    # More than the kernel buffers for a connection that is not read.
    hasty_program("enqueue", "--id", "long", "head -c 40000000 /dev/zero", check=0)
    hasty_program("worker", "start", "--drain", check=0)
    line = f"GET {API}/jobs/long/logs HTTP/1.1\r\nHost: {hasty.host}\r\nAuthorization: Bearer {FULL}\r\n\r\n"
    crowd: list[socket.socket] = []
    try:
        # One after the other: an idle client would be disconnected, too.
        for _ in range(store_threads.STREAM_THREADS):
            crowd.append(hasty.connect())
            crowd[-1].sendall(line.encode())
            assert crowd[-1].recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
        wait_until(lambda: hasty.http.get("/jobs/long/logs?tail=0").status_code == 200, what="a run to be free")
        # One client was disconnected, and its response does not pass for complete.
        assert not all(read_answer(wire).body.endswith(b"0\r\n\r\n") for wire in crowd)
    finally:
        for wire in crowd:
            wire.close()


def test_many_idle_connections_do_not_block_other_clients(server: Server) -> None:
    crowd = [server.connect() for _ in range(200)]
    try:
        assert server.get("/status")
    finally:
        for wire in crowd:
            wire.close()


def test_headers_without_end_are_not_read(server: Server) -> None:
    answer = server.send("GET /healthz HTTP/1.1", {"X-Long": "x" * 100_000})
    problem(answer, 431, "head-too-large")
    assert server.send("GET /healthz HTTP/1.1", {"X-Long": "x" * 1_000_000}).status in {0, 400, 431}
    assert server.send("GET /healthz HTTP/1.1", {"X-Long": "x" * 10_000}).status == 200


@pytest.mark.parametrize("line", ["GET /", "\x16\x03\x01\x02\x00\x01", "GET / \x00 HTTP/1.1", "get\x00 / HTTP/1.1"])
def test_a_request_that_is_not_http_is_refused(server: Server, line: str) -> None:
    answer = server.send(line)
    assert answer.status == 400
    assert answer.headers["connection"] == "close"
    assert server.get("/status")


def test_an_invalid_body_during_the_response_is_logged_in_one_line(server: Server) -> None:
    with server.connect() as wire:
        head = f"POST {API}/jobs HTTP/1.1\r\nHost: {server.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.sendall(head.encode())  # refused without a token, before the body is read
        assert wire.recv(12) == b"HTTP/1.1 401"
        wire.sendall(b"not a chunk\r\n")
        read_answer(wire)
    assert server.get("/status")
    assert "Traceback" not in server.log


@pytest.fixture(scope="module")
def hasty_program(place: Path) -> Program:
    return HastyProgram(place / "hasty" / "home")


@pytest.fixture(scope="module")
def hasty(hasty_program: Program) -> Iterator[Server]:
    """A server with little patience."""
    folder = hasty_program.home.parent
    folder.mkdir()
    with Server(hasty_program, folder) as one:
        # It closes idle connections so soon that a client would send on one that is being closed.
        one.http.headers["Connection"] = "close"
        yield one


class HastyProgram(Program):
    """The program, whose server waits for a moment where it would wait for long."""

    def start(self, *args: Any, **more: Any) -> Any:
        seconds = "c.HEAD_SECONDS, c.IDLE_SECONDS, b.BODY_TIMEOUT_SECONDS, d.STALLED_SECONDS = 0.5, 1.0, 0.5, 1.0"
        modules = "sys, queuectl.web.server as c, queuectl.web.middleware as b, queuectl.web.api.streams as d"
        code = f"import {modules}; {seconds}; "
        run = "from queuectl.cli.main import run; sys.exit(run(sys.argv[1:]))"
        streams = {"stdin": subprocess.DEVNULL, **{name: more[name] for name in ("stdout", "stderr")}}
        words = [sys.executable, "-c", code + run, *map(str, args)]
        return subprocess.Popen(words, env=self.environment(), **streams)


# ── what comes back ─────────────────────────────────────────────────────────────────────────────────────────────────


def readings(server: Server) -> Iterator[tuple[str, httpx.Response]]:
    """The answers of everything that can be looked at, with the marked job in all places."""
    for operation in OPERATIONS:
        if operation.changes or operation.path == "/events":
            continue
        path = operation.path.replace("{id}", "marked").replace("{name}", "marked").replace("{key}", "timeout")
        query = "?timeout=1ms&id=marked" if path == "/wait" else "?timeout=1ms" if path.endswith("/wait") else ""
        query = "?history=true&rules=true" if path == "/export" else query
        yield operation.path, server.http.get(path + query)


def test_the_values_of_an_environment_never_leave(server: Server, marked: str) -> None:
    answers = dict(readings(server))
    assert len(answers) > 20
    assert not [path for path, answer in answers.items() if SECRET in answer.text]
    assert answers["/jobs/{id}"].json()["env"] == {"MARK": "***"}
    assert answers["/cron/{name}"].json()["job"]["env"] == {"MARK": "***"}


def test_markup_in_a_job_stays_text(server: Server, marked: str) -> None:
    for path, answer in readings(server):
        kind = answer.headers["content-type"]
        assert kind.startswith(("application/json", "application/problem+json", "application/jsonl", "text/plain")), (
            path
        )
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert "no-store" in answer.headers["cache-control"]


def test_markup_in_an_error_is_escaped(server: Server) -> None:
    answer = server.http.post("/jobs", json={"command": "true", MARKUP: 1})
    assert MARKUP in problem(answer, 422, "unknown-name")["detail"]
    page = server.send(f"GET /{MARKUP.replace(' ', '%20')} HTTP/1.1", {"Accept": "text/html"})
    assert b"<script>" not in page.body


def test_no_site_may_put_a_page_in_a_frame(server: Server) -> None:
    headers = server.http.get("/status").headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_responses_do_not_reveal_the_server_software(server: Server) -> None:
    assert "server" not in server.http.get("/status").headers


# ── the cookie ──────────────────────────────────────────────────────────────────────────────────────────────────────


def welcome(server: Server, path: str = "/") -> Raw:
    mark = "&" if "?" in path else "?"
    return server.send(f"GET {path}{mark}token={FULL} HTTP/1.1", token=None)


def cookie_of(server: Server) -> str:
    return welcome(server).headers["set-cookie"].split(";")[0]


def test_the_token_of_an_address_becomes_a_cookie_that_only_we_get(server: Server) -> None:
    answer = welcome(server)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    value, *flags = answer.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(flags)
    assert value.startswith(f"queuectl-{server.port}=")
    assert FULL not in value


@pytest.mark.parametrize(
    "path", ["//evil.example/", "//evil.example//", "/%2f/evil.example", "/%5cevil.example", "/%0d%0aX-Bad:%20yes"]
)
def test_the_token_of_an_address_leads_nowhere_else(server: Server, path: str) -> None:
    answer = welcome(server, path)
    assert answer.status in {303, 404}
    assert not answer.headers.get("location", "/").startswith(("//", "/\\", "http"))
    assert "x-bad" not in answer.headers


def test_the_rest_of_the_address_is_kept(server: Server) -> None:
    assert welcome(server, "/jobs?state=dead&tag=a%26b").headers["location"] == "/jobs?state=dead&tag=a%26b"


def test_a_token_is_never_cut_off_where_a_comment_could_begin(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# ours\n0123456789abcdef#rest  # of the tests\n")
    file.chmod(0o600)
    assert [token.secret for token in read_token_file(str(file))] == ["0123456789abcdef#rest"]


def test_a_client_that_disappeared_is_detected() -> None:
    with server.bind("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        wire, _ = listener.accept()
        with wire:
            assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


def test_a_refused_page_explains_how_to_sign_in(server: Server) -> None:
    answer = server.send("GET /jobs HTTP/1.1", {"Accept": "text/html"}, token=None)
    assert (answer.status, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert answer.headers["www-authenticate"].startswith("Bearer")
    wrong = server.send("DELETE /jobs HTTP/1.1", {"Accept": "text/html"})
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD")
    assert server.send("POST /static/main.js HTTP/1.1").headers["allow"] == "GET, HEAD"


def test_a_wrong_token_in_an_address_makes_no_cookie(server: Server) -> None:
    answer = server.send("GET /?token=wrong HTTP/1.1", token=None)
    problem(answer, 401, "no-token")
    assert "set-cookie" not in answer.headers


def test_the_cookie_of_a_token_that_may_only_look_may_only_look(server: Server) -> None:
    answer = server.send(f"GET /?token={READ} HTTP/1.1", token=None)
    headers = {"Cookie": answer.headers["set-cookie"].split(";")[0], "Origin": server.url}
    problem(server.send(f"POST {API}/queues/some/pause HTTP/1.1", headers, token=None), 403, "read-only")
    assert server.send("POST /logout HTTP/1.1", headers, token=None).status == 303


def test_a_login_from_elsewhere_is_refused(server: Server) -> None:
    headers = {"Origin": "https://evil.example", "Content-Length": "0"}
    problem(server.send("POST /login HTTP/1.1", headers, token=None), 403, "foreign-origin")


# ── what is written down ────────────────────────────────────────────────────────────────────────────────────────────


def test_no_token_is_ever_written_to_the_log(server: Server, house: Program) -> None:
    for path in (f"/?token={FULL}", f"{API}/status?token={FULL}", f"{API}/jobs/{FULL}", f"/{FULL}"):
        server.send(f"GET {path} HTTP/1.1")
    assert FULL not in server.log
    assert READ not in server.log
    assert "Traceback" not in server.log


def test_no_token_can_be_given_as_an_argument(house: Program) -> None:
    done = house("dashboard", "--token", FULL)
    assert done.code == 2
    assert "--token-file" in done.err
