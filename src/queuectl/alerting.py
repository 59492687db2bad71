"""Alerts where no worker is alive: calling the webhook or running the command from this process, without a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from queuectl import __version__
from queuectl.clock import Clock
from queuectl.config import here
from queuectl.errors import CommandFailed, CommandRefused
from queuectl.gate import Gate
from queuectl.job.alert import Alert, Telling, Word, look, variables
from queuectl.job.hooks import shown_url
from queuectl.job.policy import Refusal
from queuectl.job.settings import Settings
from queuectl.policy.guard import Wish
from queuectl.process.asking import Unanswered, ask_now
from queuectl.queue.deliver import deliver_alert
from queuectl.store.alerting import telling_job
from queuectl.store.auditing import alert_tested
from queuectl.store.ids import new_job_ids
from queuectl.store.protocol import Store
from queuectl.upkeep.alert import Told, check, measure

COMMAND_TIMEOUT_MS: Final = 60_000
LONGEST_OUTPUT: Final = 64 * 1024  # bytes of which the last line is shown


class Teller:
    """From this process, with its environment, as far as `gate` allows. `settings`: as they are when something is told."""

    def __init__(
        self, store: Store, settings: Callable[[], Settings], environ: Mapping[str, str], *, gate: Gate, clock: Clock
    ) -> None:
        self._store = store
        self._settings = settings
        self._environ = environ
        self._gate = gate
        self._clock = clock

    def check(self) -> list[Told]:
        """Decide about all alerts: with a worker by jobs, else from here."""
        return check(self._store, here=here(self._environ), settings=self._settings, tell=self.tell)

    def test(self, name: str) -> str:
        """Call the webhook or run the command now, whatever the figures are. Only the audit log changes: it has the test before
        anything runs. Returns what came back. Raises AlertNotFound, CallRefused, CallUnanswered, CommandRefused or CommandFailed."""
        alert = self._store.alert(name)
        self._store.note(alert_tested(alert))
        figures = measure(self._store, [alert], here=here(self._environ), settings=self._settings)
        value = look(alert, figures).value or 0
        return self.tell(alert, Telling(new_job_ids(1)[0], Word.TEST, value, figures.now_ms))

    def tell(self, alert: Alert, telling: Telling) -> str:
        if alert.url is not None:
            facts = variables(alert, telling)
            answer = deliver_alert(self._store, facts, self._settings(), url=alert.url, version=__version__)
            return f"called {shown_url(alert.url)}: {answer.status} {answer.text}".rstrip()
        last = self._run(alert, telling)
        return f"ran {alert.command}" + (f": {last}" if last else "")

    def _run(self, alert: Alert, telling: Telling) -> str:
        """The last line that the command printed. The gate is asked about the same job that a worker would run."""
        job = telling_job(alert, telling)
        wish = Wish(job.queue, job.command, job.argv, job.cwd, job.env or {}, COMMAND_TIMEOUT_MS, sets_timeout=False)
        question = self._gate.command(wish, name="it", longest=LONGEST_OUTPUT, is_log=True)
        if isinstance(question, Refusal):
            raise CommandRefused(alert.name, *question)
        answer = ask_now(question, self._clock)
        if isinstance(answer, Unanswered):
            last = _last_line(answer.output)
            raise CommandFailed(alert.name, f"{answer.problem}: {last}" if last else answer.problem)
        return _last_line(answer)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
