"""The dashboard, the alert rules and the metrics page cover exactly the existing metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.clock import SystemClock
from queuectl.jobs.stats import BOUNDS
from queuectl.operations.prometheus import format_metrics
from queuectl.store.sqlite.connection import MEMORY
from queuectl.store.sqlite.store import SqliteStore

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference" / "metrics.md"
DASHBOARD = DOCS / "monitoring" / "grafana.json"
ALERTS = DOCS / "monitoring" / "alerts.yml"
GUIDE = DOCS / "guides" / "prometheus.md"


@pytest.fixture(scope="module")
def metrics() -> Iterator[dict[str, str]]:
    """Each metric and its type."""
    store = SqliteStore(MEMORY, clock=SystemClock())
    text = format_metrics(store, is_alive=lambda _: True, clock=SystemClock())
    yield dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    store.close()


def named(text: str) -> set[str]:
    return set(re.findall(r"\bqueuectl_[a-z_]+", text))


def series(metrics: dict[str, str]) -> set[str]:
    """Return the names of all time series, including the parts of histograms."""
    parts = ("_bucket", "_sum", "_count")
    return {name + part for name, kind in metrics.items() for part in (parts if kind == "histogram" else ("",))}


@pytest.mark.parametrize("path", [DASHBOARD, ALERTS], ids=lambda path: path.name)
def test_every_queried_series_is_exposed(metrics: dict[str, str], path: Path) -> None:
    found = named(path.read_text())
    assert found
    assert found <= series(metrics)


def test_the_dashboard_shows_everything_there_is(metrics: dict[str, str]) -> None:
    shown = {name.removesuffix("_bucket") for name in named(DASHBOARD.read_text())}
    assert shown == set(metrics)


def test_the_page_names_every_metric_and_its_kind(metrics: dict[str, str]) -> None:
    rows = re.findall(r"^\| `(queuectl_\w+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == metrics


def test_the_page_names_the_buckets() -> None:
    (words,) = re.findall(r"in seconds: ([^:]+)\.\n", PAGE.read_text())
    assert [float(word) for word in re.findall(r"[\d.]+\d|\d", words)] == list(BOUNDS)


def test_the_dashboard_is_whole() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    for panel in panels:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        for target in panel["targets"]:
            assert target["expr"].count("(") == target["expr"].count(")")


def test_every_alert_is_on_the_page() -> None:
    rules = re.findall(r"^      - alert: (\w+)$", ALERTS.read_text(), re.MULTILINE)
    assert rules == re.findall(r"^\| `(Queuectl\w+)` \|", GUIDE.read_text(), re.MULTILINE)
    blocks = ALERTS.read_text().split("- alert: ")[1:]
    assert all(word in block for block in blocks for word in ("expr:", "severity:", "summary:", "description:"))
