"""queuectl demo"""

from __future__ import annotations

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.result import Nothing, Result
from queuectl.cli.stage import stage


@command("demo", examples="queuectl demo")
def demo(app: App) -> Result:
    """See the whole life of some jobs in less than 20 seconds, in a home of its own.

    Every line after a $ is a real command. Nothing is left behind, also after Ctrl-C.
    """
    app.print("The life of some jobs. Every line after a $ is a real command, run in a home of its own.", flush=True)
    with stage(app) as on:
        on.tell("A job is a shell command. It is safe on disk when enqueue has printed its id.")
        on.type("""queuectl enqueue --id hello 'echo "hello from job $QUEUECTL_JOB_ID, run $QUEUECTL_RUN"'""")
        on.tell("A higher priority goes first; a delay keeps a job for later.")
        on.type("queuectl enqueue --id low --priority -5 'echo I can wait'")
        on.type("queuectl enqueue --id urgent --priority 10 'echo me first'")
        on.type("queuectl enqueue --id later --delay 4s 'echo it is time'")
        on.tell("This one fails, is tried again after 2 seconds, and fails for good. It would work the third time.")
        on.type("""queuectl enqueue --id flaky --max-retries 2 'echo "try $QUEUECTL_RUN"; [ "$QUEUECTL_RUN" -ge 3 ]'""")
        on.tell("One with a time limit, which starts a child; one that would run for an hour.")
        on.type("queuectl enqueue --id tree --timeout 1s --max-retries 1 'echo working; sleep 3600 & sleep 3600'")
        on.type("queuectl enqueue --id hour 'sleep 3600'")
        on.type("queuectl list --sort -created")

        on.tell("A worker runs them, three at a time.")
        on.type_deaf("queuectl worker start --detach --count 3 --idle-timeout 60 --name bee")
        on.type("queuectl wait hello low urgent")
        on.type("queuectl logs urgent hello low --no-markers")
        on.type("queuectl status")

        on.tell("Enough: a running job is ended with all that it started.")
        on.type("queuectl cancel hour")
        on.tell("The time limit ends the whole tree of processes.")
        on.type("queuectl wait tree")
        on.type("queuectl show tree")

        on.tell("Failed for good: the dead letter queue. wait hands on the exit code of the job.")
        on.type("queuectl wait flaky")
        on.type("queuectl dlq list")
        on.type("queuectl dlq retry flaky")
        on.type("queuectl wait flaky")
        on.type("queuectl logs flaky")

        on.tell("The delayed one has run at its time, too.")
        on.type("queuectl wait later")
        on.type("queuectl list --sort -created")
        on.type("queuectl metrics")
        on.tell("The worker finishes what it runs, and ends.")
        on.type_deaf("queuectl worker stop")
    app.print("\nThat was all; nothing of it is left. Now yours: queuectl enqueue 'echo hello'")
    return Nothing()
