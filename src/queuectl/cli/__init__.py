"""The command line: the only printer and exiter.

How to write a command (`commands/<noun>.py`):

    @command("cancel", examples=\"\"\"
        # call off a job that waits, or end one that runs
        queuectl cancel 7f3a
    \"\"\")
    @click.argument("ids", nargs=-1, required=True, metavar="ID...")
    def cancel(app: App, ids: tuple[str, ...]) -> Result:
        \"\"\"Call off jobs; a running one is ended with all that it started.\"\"\"
        outcome = control.cancel(app.open_store(), ids)
        return Done(outcome.done, refused=outcome.refused, verb="cancelled")

1. Name it in the table of `commands/table.py`: module, attribute, one line of help. Nothing else imports it.
2. Parse, call one use-case, return a Result (`result.py`): `Table`, `Stream`, `Sheet`, `Lines`, `Done`, `Raw`,
   `Nothing`. `render.py` turns it into a table, JSON or bare ids; a command never looks at `--json` or `--quiet`.
3. `app.open_store()` to write (makes home and store), `app.open_inbox()` to add jobs only (loads faster),
   `app.open_reads()` to look (makes nothing), `app.settings`.
4. Raise errors of `queuectl.errors`: the kind decides the exit status, `failure.py` prints them.
5. `app.say(...)` for words for people (stderr, only on a terminal). Nothing prints in any other way.
6. `--home --db --json --quiet --no-color -h` exist on every command by themselves. Option names of the same meaning are
   spelled alike: `--queue/-q`, `--yes`, `--timeout`, `--all`.
"""
