"""queuectl deliver: the command of the jobs in the queue `queuectl.webhooks`; not for users.

A module of its own: it runs for each webhook, and beside other commands it would load three times as much."""

from __future__ import annotations

import click

from queuectl import __version__
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.render import Lines, Result
from queuectl.webhooks import delivery as use
from queuectl.webhooks.client import Response
from queuectl.webhooks.rules import ALERT_EVENT, ORIGIN_VARIABLE, URL_VARIABLE, parse_url, redact_url


@command("deliver", examples="queuectl deliver dead 7f3a 4")
@click.argument("event", metavar="EVENT")
@click.argument("job", metavar="ID")
@click.argument("run")
def deliver(app: App, event: str, job: str, run: str) -> Result:
    """Deliver a webhook, as a job."""
    env, reads = app.environ, app.open_reads()
    if event == ALERT_EVENT:
        target = parse_url(env.get(URL_VARIABLE), "the URL")
        return _delivered(target, use.deliver_alert(reads, env, app.settings, url=target, version=__version__))
    id_, url, origin = env.get("QUEUECTL_JOB_ID", ""), env.get(URL_VARIABLE), env.get(ORIGIN_VARIABLE)
    delivery = use.parse_delivery(event, job, run, id_=id_, url=url, origin=origin)
    answer = use.deliver(reads, delivery, app.settings, version=__version__)
    return _delivered(delivery.url, answer)


def _delivered(url: str, answer: Response) -> Result:
    result = {"url": redact_url(url), "status": answer.status, "text": answer.text}
    return Lines([f"called {result['url']}: {answer.status} {answer.text}".rstrip()], result)
