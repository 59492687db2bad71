"""queuectl deliver: what jobs of the queue `queuectl.webhooks` run. Not for people."""

from __future__ import annotations

import click

from queuectl import __version__
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.result import Lines, Result
from queuectl.job.hooks import SAID, URL, shown_url
from queuectl.queue import deliver as use


@command("deliver", examples="queuectl deliver dead 7f3a 4")
@click.argument("happening", metavar="EVENT")
@click.argument("job", metavar="ID")
@click.argument("run")
def deliver(app: App, happening: str, job: str, run: str) -> Result:
    """Call a webhook, as the job that this is run by."""
    env = app.environ
    id_, url, said = env.get("QUEUECTL_JOB_ID", ""), env.get(URL), env.get(SAID)
    delivery = use.read_delivery(happening, job, run, id_=id_, url=url, said=said)
    answer = use.deliver(app.open_reads(), delivery, app.settings, version=__version__)
    told = {"url": shown_url(delivery.url), "status": answer.status, "text": answer.text}
    return Lines([f"called {told['url']}: {answer.status} {answer.text}".rstrip()], told)
