"""queuectl deliver: what jobs of the queue `queuectl.webhooks` run. Not for people."""

from __future__ import annotations

import click

from queuectl import __version__
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.result import Lines, Result
from queuectl.hooks.send import Answer
from queuectl.job.hooks import EVENT_OF_ALERT, SAID, URL, parse_url, shown_url
from queuectl.queue import deliver as use


@command("deliver", examples="queuectl deliver dead 7f3a 4")
@click.argument("happening", metavar="EVENT")
@click.argument("job", metavar="ID")
@click.argument("run")
def deliver(app: App, happening: str, job: str, run: str) -> Result:
    """Call a webhook, as the job that this is run by."""
    env = app.environ
    if happening == EVENT_OF_ALERT:
        whom = parse_url(env.get(URL), "the URL")
        return _told(whom, use.deliver_alert(app.open_reads(), env, app.settings, url=whom, version=__version__))
    id_, url, said = env.get("QUEUECTL_JOB_ID", ""), env.get(URL), env.get(SAID)
    delivery = use.read_delivery(happening, job, run, id_=id_, url=url, said=said)
    answer = use.deliver(app.open_reads(), delivery, app.settings, version=__version__)
    return _told(delivery.url, answer)


def _told(url: str, answer: Answer) -> Result:
    told = {"url": shown_url(url), "status": answer.status, "text": answer.text}
    return Lines([f"called {told['url']}: {answer.status} {answer.text}".rstrip()], told)
