"""`queuectl dashboard`: its address, tokens, output and shutdown."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from queuectl.installation import install_command
from tests.needs import require
from tests.program import Program, environment
from tests.wait import wait_until
from tests.web.server import API, FULL, Server

SECRET = "a-token-of-my-own-0123"


def begin(
    queuectl: Program, *words: str, env: dict[str, str | None] | None = None
) -> tuple[subprocess.Popen[bytes], str]:
    """The server, and the first line that it prints into a pipe."""
    process = queuectl.start(
        "dashboard", "--port", "0", *words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    return process, process.stdout.readline().decode().strip()


def end(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# mine\n{SECRET}\n\ngrafana read {SECRET}-read\n")
    path.chmod(0o600)
    return path


# ── what it says, and how it ends ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_into_a_pipe_it_prints_its_address_and_nothing_else(queuectl: Program, number: signal.Signals) -> None:
    process, line = begin(queuectl)
    address, _, token = line.partition("?token=")
    assert address.startswith("http://127.0.0.1:")
    assert httpx.get(
        address + "api/v1/status", headers={"Authorization": f"Bearer {token}"}, trust_env=False
    ).is_success
    assert end(process, number) == (0, "", "")


def test_the_token_is_another_one_at_each_start(queuectl: Program) -> None:
    lines = []
    for _ in range(2):
        process, line = begin(queuectl)
        lines.append(line.partition("?token=")[2])
        end(process)
    assert len(set(lines)) == 2
    assert min(map(len, lines)) >= 32


def test_with_json_the_address_is_an_object(queuectl: Program) -> None:
    process, line = begin(queuectl, "--json")
    said = json.loads(line)
    assert said["pid"] == process.pid
    assert "?token=" in said["url"]
    assert end(process) == (0, "", "")


def test_nothing_is_made_before_the_first_job(start_server: Callable[..., Server], home: Path) -> None:
    server = start_server()
    for path in ("/status", "/jobs", "/workers", "/queues", "/config", "/metrics", "/cron", "/batches", "/doctor"):
        assert server.http.get(path).status_code == 200
    assert server.http.get(server.url + "/metrics").status_code == 200
    assert server.post("/jobs/actions", {"action": "cancel", "where": {}}) == {"done": [], "refused": []}
    assert server.http.post("/jobs/nothing/cancel").status_code == 404
    assert server.http.post("/jobs", json={"command": ""}).status_code == 422
    assert not home.exists()
    server.post("/jobs", {"command": "true"}, status=201)
    assert home.exists()
    assert server.get("/status")["total"] == 1


# ── tokens of one's own ─────────────────────────────────────────────────────────────────────────────────────────────


def test_with_a_token_of_ones_own_the_address_carries_none(queuectl: Program, tokens: Path) -> None:
    process, line = begin(queuectl, "--token-file", str(tokens))
    assert "token" not in line
    for secret, code in ((SECRET, 200), (f"{SECRET}-read", 200), ("x", 401)):
        headers = {"Authorization": f"Bearer {secret}"}
        assert httpx.get(line + "api/v1/status", headers=headers, trust_env=False).status_code == code
    end(process)


def test_a_token_may_come_from_the_environment(queuectl: Program) -> None:
    process, line = begin(queuectl, env={"QUEUECTL_TOKEN": SECRET})
    assert "token" not in line
    headers = {"Authorization": f"Bearer {SECRET}"}
    assert httpx.get(line + "api/v1/status", headers=headers, trust_env=False).status_code == 200
    end(process)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_file_that_others_may_read_is_refused(queuectl: Program, tokens: Path, mode: int) -> None:
    tokens.chmod(mode)
    done = queuectl("dashboard", "--token-file", tokens, check=2)
    assert f"others can read it (mode {mode:o})" in done.err
    assert "chmod 600" in done.err
    assert SECRET not in done.err


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "short\n", "a b c " + SECRET, "write " + SECRET, "full caf\u00e9-0123456789-xyz"]
)
def test_a_token_file_without_good_tokens_is_refused(queuectl: Program, tokens: Path, text: str) -> None:
    tokens.write_text(text)
    done = queuectl("dashboard", "--token-file", tokens, check=2)
    assert (done.out, len(done.err.splitlines())) == ("", 2)


def test_a_token_in_the_environment_that_is_too_short_is_refused(queuectl: Program) -> None:
    done = queuectl("dashboard", env={"QUEUECTL_TOKEN": "short"}, check=2)
    assert done.err.startswith("queuectl: QUEUECTL_TOKEN: ") or "QUEUECTL_TOKEN" in done.err
    assert queuectl("dashboard", "--token-file", "/nowhere", check=1).out == ""
    assert "stdin" not in queuectl("dashboard", "--token-file", "-", check=1).err


# ── where it listens ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_port_in_use_is_reported_in_one_line(queuectl: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = queuectl("dashboard", "--port", str(other.getsockname()[1]), check=1)
    assert "cannot listen on 127.0.0.1" in done.err
    assert (done.out, len(done.err.splitlines())) == ("", 2)


@pytest.mark.parametrize("port", ["x", "-1", "65536", "8e3", "", "٣"])
def test_an_invalid_port_is_refused(queuectl: Program, port: str) -> None:
    assert "expected an integer from 0 to 65535" in queuectl("dashboard", "--port", port, check=2).err


@pytest.mark.parametrize("words", [(), ("--token-file",), ("--behind-proxy",)])
def test_other_hosts_need_a_configured_token_and_tls(queuectl: Program, tokens: Path, words: tuple[str, ...]) -> None:
    given = [word if word != "--token-file" else f"--token-file={tokens}" for word in words]
    done = queuectl("dashboard", "--host", "0.0.0.0", "--port", "0", *given, check=2)
    assert "is reachable from other hosts" in done.err


def test_behind_a_proxy_the_server_accepts_the_configured_host_name(start_server: Callable[..., Server]) -> None:
    server = start_server("--behind-proxy", "--allow-host", "Queue.Example")
    name = {"Host": "queue.example"}
    assert server.send(f"GET {API}/status HTTP/1.1", name).status == 200
    assert server.send(f"GET {API}/status HTTP/1.1", {"Host": "other.example"}).status == 421
    cookie = server.send(f"GET /?token={FULL} HTTP/1.1", name, token=None).headers["set-cookie"]
    assert "Secure" in cookie.split("; ")
    by_browser = {**name, "Cookie": cookie.split(";")[0], "Origin": "https://queue.example"}
    assert server.send(f"POST {API}/queues/a/pause HTTP/1.1", by_browser, token=None).status == 200
    by_browser["Origin"] = "http://queue.example"
    assert server.send(f"POST {API}/queues/a/pause HTTP/1.1", by_browser, token=None).status == 403


@pytest.mark.parametrize("name", ["", "a b", "http://x", "x:80", "-x", "x/"])
def test_an_invalid_host_name_is_refused(queuectl: Program, name: str) -> None:
    assert "not the name of a host" in queuectl("dashboard", "--allow-host", name, check=2).err


def test_forwarded_headers_are_not_trusted(start_server: Callable[..., Server]) -> None:
    server = start_server("--behind-proxy")
    headers = {"X-Forwarded-Host": "evil.example", "X-Forwarded-For": "10.0.0.1", "Forwarded": "host=evil.example"}
    assert server.send(f"GET {API}/status HTTP/1.1", headers).status == 200
    assert server.send(f"GET {API}/status HTTP/1.1", {**headers, "Host": "evil.example"}).status == 421


# ── TLS ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for the loopback, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    try:
        subprocess.run(["openssl", *words.split(), *names], check=True, capture_output=True)
    except FileNotFoundError:
        require("openssl", None, "it makes the certificate")
    return certificate, key


def test_with_tls_files_it_speaks_https_and_nothing_else(
    start_server: Callable[..., Server], pair: tuple[Path, Path]
) -> None:
    certificate, key = pair
    server = start_server("--tls-cert", str(certificate), "--tls-key", str(key))
    assert server.url.startswith("https://")
    trust = ssl.create_default_context(cafile=str(certificate))
    with httpx.Client(verify=trust, trust_env=False, headers={"Authorization": f"Bearer {FULL}"}) as http:
        assert http.get(server.url + API + "/status").status_code == 200
        answer = http.get(f"{server.url}/?token={FULL}", follow_redirects=False)
        assert "Secure" in answer.headers["set-cookie"]
    with server.connect() as wire:
        wire.sendall(f"GET /healthz HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        assert not wire.recv(100).startswith(b"HTTP")


def test_others_may_come_with_tls_and_a_token_of_ones_own(
    start_server: Callable[..., Server], pair: tuple[Path, Path]
) -> None:
    certificate, key = pair
    server = start_server("--host", "0.0.0.0", "--tls-cert", str(certificate), "--tls-key", str(key))
    trust = ssl.create_default_context(cafile=str(certificate))
    url = server.url.replace("0.0.0.0", "127.0.0.1")
    with httpx.Client(verify=trust, trust_env=False, headers={"Authorization": f"Bearer {FULL}"}) as http:
        assert http.get(url + API + "/status").status_code == 200
        assert http.get(url + API + "/status", headers={"Host": "evil.example"}).status_code == 421


def test_invalid_tls_files_are_refused_before_the_server_listens(
    queuectl: Program, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    certificate, key = pair
    text = tmp_path / "text"
    text.write_text("nothing of the kind")
    words = ("dashboard", "--port", "0", "--tls-cert")
    assert "goes with --tls-key" in queuectl(*words, certificate, check=2).err
    assert "not a certificate" in queuectl(*words, certificate, "--tls-key", text, check=2).err
    assert "not a certificate" in queuectl(*words, key, "--tls-key", certificate, check=2).err
    assert "cannot read" in queuectl(*words, tmp_path / "nothing", "--tls-key", key, check=1).err


# ── what is not installed, and what is not loaded ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "jinja2"])
def test_without_the_extra_the_error_explains_how_to_install_it(home: Path, missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None; from queuectl.cli.main import run; sys.exit(run(['dashboard']))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(home), capture_output=True, text=True)
    assert done.returncode == 1
    assert f"install them: {install_command('dashboard')}\n" in done.stderr
    assert (done.stdout, len(done.stderr.splitlines())) == ("", 2)


def test_a_store_that_cannot_serve_is_a_problem_and_not_the_end(
    start_server: Callable[..., Server], home: Path
) -> None:
    server = start_server()
    server.post("/jobs", {"command": "true"}, status=201)
    other = start_server("--db", str(home / "nothing" / "queue.db"))
    assert other.http.post("/jobs", json={"command": "true"}).status_code == 503
    assert other.http.get("/status").status_code == 200


def test_the_server_stops_at_once_also_after_two_signals(queuectl: Program) -> None:
    process, _ = begin(queuectl)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: process.poll() is not None, what="it to end")
    assert process.communicate()[1] == b""
    assert process.returncode == 0
