from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from queuectl.clock import SystemClock
from queuectl.operations.prometheus import escape_label, format_metrics
from queuectl.store.store import Store
from tests.operations.life import KILLED, claim, enqueue, register, run

SAMPLE = re.compile(r'^[a-z_]+(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)+\})? -?[0-9.e+-]+$')


def samples(text: str) -> dict[str, float]:
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in text.splitlines())
        if not name.startswith("#")
    }


def exposed(store: Store) -> str:
    return format_metrics(store, is_alive=lambda _: True, clock=SystemClock())


def test_every_line_is_a_sample_or_a_comment(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home)
    text = exposed(store)
    assert text.endswith("\n")
    assert not [line for line in text.splitlines() if not line.startswith("# ") and not SAMPLE.match(line)]


def test_the_names_are_those_of_the_contract(store: Store) -> None:
    names = re.findall(r"^# TYPE (\S+) (\S+)$", exposed(store), re.MULTILINE)
    totals = ("enqueued", "started", "completed", "failed", "dead", "retried", "rescued")
    assert dict(names) == {
        "queuectl_jobs": "gauge",
        **{f"queuectl_jobs_{what}_total": "counter" for what in totals},
        "queuectl_run_seconds": "histogram",
        "queuectl_wait_seconds": "histogram",
        "queuectl_workers": "gauge",
        "queuectl_slots": "gauge",
        "queuectl_oldest_waiting_seconds": "gauge",
        "queuectl_store_seconds": "gauge",
    }
    assert len(names) == len(dict(names))


def test_the_metrics_count_events(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b", queue="mail")
    enqueue(store, "c")
    run(store, home)
    run(store, home, KILLED)
    claim(store, home)
    seen = samples(exposed(store))
    assert seen['queuectl_jobs{state="completed",queue="default"}'] == 1
    assert seen['queuectl_jobs{state="dead",queue="default"}'] == 0
    assert seen['queuectl_jobs{state="dead",queue="mail"}'] == 1
    assert seen['queuectl_jobs_enqueued_total{queue="default"}'] == 2
    assert seen['queuectl_jobs_started_total{queue="default"}'] == 2
    assert seen['queuectl_jobs_failed_total{queue="mail"}'] == 1
    assert seen['queuectl_run_seconds_bucket{queue="default",le="0.1"}'] == 0
    assert seen['queuectl_run_seconds_bucket{queue="default",le="0.25"}'] == 1
    assert seen['queuectl_run_seconds_bucket{queue="default",le="+Inf"}'] == 1
    assert seen['queuectl_run_seconds_count{queue="default"}'] == 1
    assert seen['queuectl_run_seconds_sum{queue="default"}'] == 0.25
    assert seen["queuectl_workers"] == 1
    assert seen['queuectl_slots{busy="true"}'] == 1
    assert seen['queuectl_slots{busy="false"}'] == 0
    assert seen['queuectl_oldest_waiting_seconds{queue="mail"}'] == 0


def test_prometheus_parses_the_output(store: Store, home: Path) -> None:
    register(store, home)
    for name in ("a", "b", "c"):
        enqueue(store, name, queue="mail" if name == "b" else "default")
        run(store, home)
    families = {family.name: family for family in text_string_to_metric_families(exposed(store))}
    assert families["queuectl_jobs_enqueued"].type == "counter"
    assert {family.type for family in families.values()} == {"counter", "gauge", "histogram"}
    assert all(family.documentation for family in families.values())
    for name in ("queuectl_run_seconds", "queuectl_wait_seconds"):
        of_default = [sample for sample in families[name].samples if sample.labels["queue"] == "default"]
        buckets = [sample for sample in of_default if sample.name.endswith("_bucket")]
        assert [sample.value for sample in buckets] == sorted(sample.value for sample in buckets)
        assert [sample.labels["le"] for sample in buckets][-1] == "+Inf"
        (count,) = (sample.value for sample in of_default if sample.name.endswith("_count"))
        assert count == buckets[-1].value == 2
    (took,) = families["queuectl_store_seconds"].samples
    assert 0 <= took.value < 60


def test_counters_do_not_decrease_when_jobs_are_removed(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home)
    before = samples(exposed(store))
    store.reset()
    after = samples(exposed(store))
    growing = [name for name in before if "_total" in name or "_seconds_" in name]
    assert len(growing) > 40
    assert {name: after[name] for name in growing} == {name: before[name] for name in growing}


def test_special_characters_of_labels_are_escaped() -> None:
    assert escape_label('a"b\\c\nd') == 'a\\"b\\\\c\\nd'


def test_queues_beyond_the_maximum_share_a_label(store: Store, home: Path) -> None:
    register(store, home)
    for number, queue in enumerate(("a", "b", "c", "often", "often", "often")):
        enqueue(store, f"j{number}", queue=queue)
    for _ in range(6):
        run(store, home)
    enqueue(store, "waits", queue="d")

    def seen(most: int) -> dict[str, float]:
        return samples(format_metrics(store, is_alive=lambda _: True, clock=SystemClock(), most_queues=most))

    whole, bounded = seen(5), seen(2)
    assert {name for name in whole if "queue=" in name and '"*"' in name} == set()
    queues = {found[1] for name in bounded if (found := re.search(r'queue="([^"]*)"', name))}
    assert queues == {"a", "often", "*"}
    for name in ("queuectl_jobs_completed_total", "queuectl_jobs_enqueued_total", "queuectl_run_seconds_count"):
        assert bounded[f'{name}{{queue="often"}}'] == whole[f'{name}{{queue="often"}}'] == 3
        others = [whole.get(f'{name}{{queue="{queue}"}}', 0) for queue in "bcd"]
        assert bounded[f'{name}{{queue="*"}}'] == sum(others) >= 2
    assert bounded['queuectl_jobs{state="pending",queue="*"}'] == 1
    assert bounded['queuectl_wait_seconds_bucket{queue="*",le="+Inf"}'] == 2
