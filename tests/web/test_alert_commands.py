"""Alert commands and the dashboard: accepted only if it was started so, and run only as the policy of the host allows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.program import Leftovers, Program
from tests.users import OTHER, me, other
from tests.wait import wait_until
from tests.web.server import READ, Server

StartServer = Callable[..., Server]
ALLOW = "--allow-alert-commands"


def write_policy(home: Path, text: str) -> Path:
    home.mkdir(mode=0o700, exist_ok=True)
    new = home / "policy.new"
    new.write_text(text)
    new.chmod(0o600)
    return new.replace(home / "policy.toml")


@pytest.fixture
def strict(home: Path) -> Path:
    return write_policy(home, f'user = "{me()}"\nshell = false\nprograms = ["/bin/echo"]\n')


def test_an_alert_with_a_command_is_forbidden_unless_the_server_was_started_for_it(start_server: StartServer) -> None:
    server = start_server()
    answer = server.http.post("/alerts", json={"name": "a", "dead": 1, "command": "id"})
    assert answer.status_code == 403
    assert answer.json()["code"] == "alert-commands-off"
    assert "--allow-alert-commands" in answer.json()["hint"]
    assert server.get("/alerts")["items"] == []


def test_a_server_that_was_started_for_it_accepts_an_alert_with_a_command(start_server: StartServer) -> None:
    server = start_server(ALLOW)
    server.post("/alerts", {"name": "a", "dead": 1, "command": "echo told"}, status=201)
    assert server.post("/alerts/a/test")["text"] == "ran echo told: told"


def test_a_read_only_token_cannot_test_an_alert(start_server: StartServer) -> None:
    server = start_server(ALLOW)
    server.post("/alerts", {"name": "a", "dead": 1, "command": "echo told"}, status=201)
    with server.client(READ) as viewer:
        assert viewer.post("/alerts/a/test").status_code == 403


def test_a_test_over_http_asks_the_policy(start_server: StartServer, strict: Path, tmp_path: Path) -> None:
    server = start_server(ALLOW)
    proof = tmp_path / "proof"
    server.post("/alerts", {"name": "a", "dead": 1, "command": f"id > {proof}"}, status=201)
    answer = server.http.post("/alerts/a/test")
    assert (answer.status_code, answer.json()["code"]) == (409, "command-refused")
    assert answer.json()["detail"].startswith("the command of a is refused by policy: shell: ")
    assert not proof.exists()


def test_a_test_over_http_asks_the_policy_that_the_server_was_given(
    start_server: StartServer, strict: Path, tmp_path: Path
) -> None:
    elsewhere = strict.rename(tmp_path / "other.toml")
    server = start_server(ALLOW, "--policy", str(elsewhere))
    server.post("/alerts", {"name": "a", "dead": 1, "command": "id"}, status=201)
    assert server.http.post("/alerts/a/test").json()["code"] == "command-refused"


def test_an_alert_that_fires_in_the_server_asks_the_policy(
    start_server: StartServer, strict: Path, tmp_path: Path
) -> None:
    server = start_server(ALLOW)
    proof = tmp_path / "proof"
    server.post("/alerts", {"name": "a", "no_worker": "1ms", "for": 0, "command": f"id > {proof}"}, status=201)
    wait_until(lambda: "the command of a is refused by policy: shell: " in server.log, what="the refusal in the log")
    assert not proof.exists()
    assert server.get("/alerts/a")["untold"] == 1


def test_a_server_follows_a_change_of_the_policy(start_server: StartServer, home: Path) -> None:
    server = start_server(ALLOW)
    server.post("/alerts", {"name": "a", "dead": 1, "command": "echo told"}, status=201)
    assert server.http.post("/alerts/a/test").status_code == 200
    write_policy(home, f'user = "{me()}"\nshell = false\n')
    assert server.http.post("/alerts/a/test").status_code == 409
    (home / "policy.toml").unlink()
    assert server.http.post("/alerts/a/test").status_code == 409, "the last policy stays in force"


def test_a_server_does_not_start_with_a_policy_that_others_can_change(queuectl: Program, strict: Path) -> None:
    strict.chmod(0o666)
    answer = queuectl("dashboard", "--port", "0", check=1)
    assert "policy.toml" in answer.err


def test_every_test_of_an_alert_is_in_the_audit_log(start_server: StartServer, strict: Path) -> None:
    server = start_server(ALLOW)
    server.post("/alerts", {"name": "a", "dead": 1, "command": "id"}, status=201)
    server.http.post("/alerts/a/test")
    newest = server.get("/audit", limit=1)["items"][0]
    assert (newest["what"], newest["subjects"], newest["who"]["token"]) == ("alert test", ["a"], "ours")
    assert newest["after"]["tells"] == "id"


# ── as another user ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def of_root() -> Iterator[tuple[Server, Path]]:
    """A server of root's whose policy names another user, and a directory where all may write."""
    other()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        work = place / "work"
        work.mkdir()
        work.chmod(0o1777)
        queuectl = Program(place / "home", env={"ROOTS_SECRET": "s3cret"})
        left = Leftovers(place / "home")
        write_policy(place / "home", f'user = "{OTHER}"\numask = "027"\n')
        with Server(queuectl, place, ALLOW) as server:
            yield server, work
        assert left.end() == []


def test_an_alert_command_runs_as_the_user_that_the_policy_names(of_root: tuple[Server, Path]) -> None:
    server, work = of_root
    tell = f"id -u > {work}/who; id -G >> {work}/who; umask >> {work}/who; env > {work}/env"
    server.post("/alerts", {"name": "a", "dead": 1, "command": tell}, status=201)
    server.post("/alerts/a/test")
    user = other()
    groups = " ".join(map(str, os.getgrouplist(user.pw_name, user.pw_gid)))
    assert (work / "who").read_text().splitlines() == [str(user.pw_uid), groups, "0027"]
    seen = (work / "env").read_text()
    assert f"USER={OTHER}" in seen
    assert "QUEUECTL_ALERT=a\n" in seen
    assert "s3cret" not in seen
