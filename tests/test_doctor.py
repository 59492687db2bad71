"""The parts of `doctor` that a test cannot make happen: network disks, clocks of servers, checks that fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuectl.alerts.rules import Alert, AlertEvent, Kind, Notification
from queuectl.clock import Clock, SystemClock
from queuectl.config import here
from queuectl.doctor import Check, examine, fix
from queuectl.doctor.configuration import alerts
from queuectl.doctor.finding import CheckResult, Severity, Target, note, problem
from queuectl.doctor.storage import NETWORK, kind_of, unfit
from queuectl.doctor.storage import clock as check_clock
from queuectl.paths import make_home, store_file
from queuectl.store.alerts import notification_job
from queuectl.store.open import open_store
from queuectl.store.sqlite.store import SqliteStore
from queuectl.store.store import Store
from tests import postgres
from tests.clock import FakeClock

MOUNTS = r"""/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /home nfs4 rw,vers=4.2 0 0
me@host: /home/me/far\040away fuse.sshfs rw 0 0
tmpfs /home/me/tmp tmpfs rw 0 0
/dev/vdb /mnt/größe ext4 rw 0 0
//server/share /mnt cifs rw 0 0
"""


@pytest.fixture(scope="session", autouse=True)
def stop_server() -> Iterator[None]:
    yield
    postgres.stop_server()


def target(
    home: Path, store: Store | None = None, *, file: str | None = "queue.db", clock: Clock | None = None
) -> Target:
    return Target(
        home=str(home),
        db=None,
        address="the address",
        store_file=file,
        store=store,
        trouble=None,
        here=here({}),
        environ={},
        clock=clock or SystemClock(),
        user=os.geteuid(),
    )


def test_a_message_of_an_alert_that_waits_for_long_is_noted(home: Path) -> None:
    clock = FakeClock()
    make_home(str(home))
    with closing(SqliteStore(store_file(str(home)), clock=clock)) as store:
        now = clock.now_ms()
        store.alerts.add(Alert("late", Kind.DEAD, 1, None, None, 0, None, None, "page", "/", now))
        told = store.alerts.get("late")._replace(told_ms=now, checked_ms=now)
        store.alerts.update(told, [notification_job(told, Notification("call", AlertEvent.FIRING, 1, now))])
        assert alerts(target(home, store)) == "1 alert, none firing"
        clock.advance(601)
        store.alerts.update(store.alerts.get("late")._replace(checked_ms=clock.now_ms()))
        (finding,) = alerts(target(home, store))
        assert finding.message == "the last message of late has waited for 10m1s"
        assert finding.hint == "see why: queuectl explain call"


# ── disks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "place, kind",
    [
        ("/", "ext4"),
        ("/home", "nfs4"),
        ("/homely", "ext4"),
        ("/home/you/.queuectl", "nfs4"),
        ("/home/me/far away/x", "fuse.sshfs"),
        ("/home/me/tmp", "tmpfs"),
        ("/mnt/größe/x", "ext4"),
        ("/mnt/other", "cifs"),
    ],
)
def test_the_file_system_of_a_place_is_that_of_the_nearest_mount(place: str, kind: str) -> None:
    assert kind_of(place, MOUNTS) == kind


def test_disks_beyond_the_machine_are_known() -> None:
    assert {"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p"} <= NETWORK
    assert not {"ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs"} & NETWORK


def test_a_network_disk_is_a_problem_for_a_file_and_a_note_for_a_home(home: Path) -> None:
    found = unfit("/home", "nfs4", target(home))
    assert found.severity is Severity.PROBLEM
    assert "PostgreSQL" in found.hint
    assert unfit("/home", "nfs4", target(home, file=None)).severity is Severity.NOTE


# ── the clock of a server ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_clock_that_differs_from_the_databases_is_told(home: Path) -> None:
    with postgres.server().store() as url, closing(open_store(str(home), url)) as store:
        assert check_clock(target(home, store)) == "agrees with the database"
        own = FakeClock()  # years from what the server says
        (found,) = check_clock(target(home, store, clock=own))
        assert (found.code, found.severity) == ("clock-differs", Severity.NOTE)
        assert "the database's" in found.message


# ── the table of checks ─────────────────────────────────────────────────────────────────────────────────────────────


def broken(_: Target) -> CheckResult:
    raise ZeroDivisionError("postgresql://me:s3cret@host/db")


def barred(_: Target) -> CheckResult:
    raise PermissionError(13, "Permission denied", "/some/file")


def test_a_check_that_fails_is_a_finding_and_the_others_still_run(home: Path) -> None:
    checks = [Check("broken", broken), Check("barred", barred), Check("sound", lambda _: "all is well")]
    first, second, third = examine(target(home), checks)
    assert first.findings[0].message == "cannot be checked: ZeroDivisionError"
    assert second.findings[0].message == "cannot be checked: /some/file: Permission denied"
    assert (first.status, third.status, third.fine) == ("problem", "ok", "all is well")


def test_what_needs_a_store_is_not_looked_at_without_one(home: Path) -> None:
    (checked,) = examine(target(home), [Check("broken", broken, needs_store=True)])
    assert (checked.status, checked.findings) == ("skipped", [])


def test_the_worst_finding_of_a_check_is_its_status(home: Path) -> None:
    both = [note("a", "b", "c"), problem("a", "b", "c")]
    checked = examine(target(home), [Check("both", lambda _: both), Check("one", lambda _: both[:1])])
    assert [one.status for one in checked] == ["problem", "note"]


def test_a_repair_that_fails_does_not_keep_the_others_from_it(home: Path) -> None:
    def cannot() -> str:
        raise PermissionError(1, "Operation not permitted", "/some/file")

    seen = [problem("a", "b", "c", cannot), note("d", "e", "f", lambda: "done it"), note("g", "h", "i")]
    done = fix(examine(target(home), [Check("x", lambda _: seen)]))
    assert [(one.code, one.done, one.message) for one in done] == [
        ("a", False, "/some/file: Operation not permitted"),
        ("d", True, "done it"),
    ]
