from __future__ import annotations

from collections.abc import Callable

from tests.program import Program, WorkerProcess

StartWorker = Callable[..., WorkerProcess]


def test_metrics_show_success_times_and_throughput(queuectl: Program, start_worker: StartWorker) -> None:
    for command in ("true", "sleep 0.1", "exit 1"):
        queuectl("enqueue", "--max-retries", "1", command, check=0)
    assert start_worker("--drain").wait() == 0
    figures = queuectl("metrics", "--json", check=0).json
    assert set(figures) == {
        "total",
        "states",
        "queues",
        "success_rate",
        "average_attempts",
        "duration_ms",
        "wait_ms",
        "throughput",
    }
    assert figures["total"] == 3
    assert figures["queues"]["default"]["dead"] == 1
    assert figures["success_rate"] == 2 / 3
    assert figures["duration_ms"]["count"] == 2
    assert figures["duration_ms"]["max"] >= 100
    assert figures["duration_ms"]["min"] <= figures["duration_ms"]["p50"] <= figures["duration_ms"]["p99"]
    assert figures["throughput"] == {"minute": 2, "hour": 2, "day": 2}
    text = queuectl("metrics", check=0).out
    assert "66.7%" in text
    assert "3 (2 completed, 1 dead)" in text
    assert "2 in the last minute" in text


def test_metrics_without_a_data_directory(queuectl: Program) -> None:
    figures = queuectl("metrics", "--json", check=0).json
    assert figures["success_rate"] is None
    assert figures["duration_ms"]["avg"] is None
    assert "no job has ended yet" in queuectl("metrics", check=0).out
    assert "queuectl_workers 0\n" in queuectl("metrics", "--prometheus", check=0).out
    assert not queuectl.home.exists()


def test_prometheus_parses_the_same_metrics(queuectl: Program) -> None:
    queuectl("enqueue", "--queue", "mail", "true", check=0)
    out = queuectl("metrics", "--prometheus", check=0).out
    assert 'queuectl_jobs{state="pending",queue="mail"} 1\n' in out
    assert 'queuectl_jobs_enqueued_total{queue="mail"} 1\n' in out
