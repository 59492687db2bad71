"""completion: the script that makes a shell complete our words."""

from __future__ import annotations

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.result import Lines, Result


@command(
    "completion",
    any_home=True,
    examples="""
        # bash: now, and in every new shell
        source <(queuectl completion bash)
        echo 'source <(queuectl completion bash)' >> ~/.bashrc

        # zsh, fish
        queuectl completion zsh > "${fpath[1]}/_queuectl"
        queuectl completion fish > ~/.config/fish/completions/queuectl.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(app: App, shell: str) -> Result:
    """Print the script that makes a shell complete commands, options, states, settings, and from the store ids, queues and names."""
    from click.shell_completion import ShellComplete, get_completion_class

    from queuectl.cli.commands.table import root
    from queuectl.cli.invoke import COMPLETE, PROGRAM

    found = get_completion_class(shell)
    assert found is not None
    # Past bash's own source(): it runs bash only to complain on stderr about versions of before 2016.
    script = ShellComplete.source(found(root, {}, PROGRAM, COMPLETE))
    return Lines(script.splitlines(), {"shell": shell, "script": script})
