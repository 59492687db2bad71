"""Send notifications of alerts from this process if no worker is alive: call the webhook or run the command, without a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from queuectl import __version__
from queuectl.alerts.evaluator import Sent, check, measure
from queuectl.alerts.rules import Alert, AlertEvent, Notification, measure_alert, notification_variables
from queuectl.clock import Clock
from queuectl.config import here
from queuectl.errors import CommandFailed, CommandRefused
from queuectl.policy.evaluator import Request
from queuectl.policy.gate import Gate
from queuectl.policy.rules import Refusal
from queuectl.process.helper_command import HelperFailure, run_helper
from queuectl.settings import Settings
from queuectl.store.alerts import notification_job
from queuectl.store.audit import alert_tested
from queuectl.store.enqueue import new_job_ids
from queuectl.store.store import Store
from queuectl.webhooks.delivery import deliver_alert
from queuectl.webhooks.rules import redact_url

COMMAND_TIMEOUT_MS: Final = 60_000
MAX_OUTPUT_BYTES: Final = 64 * 1024  # only the last line is shown


class AlertDelivery:
    """Sends notifications with the environment of this process, if `gate` allows it. `settings` returns the current ones."""

    def __init__(
        self, store: Store, settings: Callable[[], Settings], environ: Mapping[str, str], *, gate: Gate, clock: Clock
    ) -> None:
        self._store = store
        self._settings = settings
        self._environ = environ
        self._gate = gate
        self._clock = clock

    def check(self) -> list[Sent]:
        """Evaluate all alerts: with a worker by delivery jobs, else from this process."""
        return check(self._store, here=here(self._environ), settings=self._settings, deliver=self.deliver)

    def test(self, name: str) -> str:
        """Send a test notification now. Only the audit log changes, before anything runs.

        Returns the response as text. Raises AlertNotFound, WebhookRefused, WebhookUnanswered, CommandRefused or CommandFailed."""
        alert = self._store.alerts.get(name)
        self._store.audit.add(alert_tested(alert))
        figures = measure(self._store, [alert], here=here(self._environ), settings=self._settings)
        value = measure_alert(alert, figures).value or 0
        return self.deliver(alert, Notification(new_job_ids(1)[0], AlertEvent.TEST, value, figures.now_ms))

    def deliver(self, alert: Alert, notification: Notification) -> str:
        if alert.url is not None:
            facts = notification_variables(alert, notification)
            answer = deliver_alert(self._store, facts, self._settings(), url=alert.url, version=__version__)
            return f"called {redact_url(alert.url)}: {answer.status} {answer.text}".rstrip()
        last = self._run(alert, notification)
        return f"ran {alert.command}" + (f": {last}" if last else "")

    def _run(self, alert: Alert, notification: Notification) -> str:
        """Run the command and return its last line of output. The policy is evaluated for the same job that a worker would run."""
        job = notification_job(alert, notification)
        request = Request(
            job.queue, job.command, job.argv, job.cwd, job.env or {}, COMMAND_TIMEOUT_MS, sets_timeout=False
        )
        command = self._gate.command(request, name="it", max_output=MAX_OUTPUT_BYTES, is_log=True)
        if isinstance(command, Refusal):
            raise CommandRefused(alert.name, *command)
        answer = run_helper(command, self._clock)
        if isinstance(answer, HelperFailure):
            last = _last_line(answer.output)
            raise CommandFailed(alert.name, f"{answer.problem}: {last}" if last else answer.problem)
        return _last_line(answer)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
