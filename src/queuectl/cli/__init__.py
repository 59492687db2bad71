"""The command line: the only package that prints and exits.

How to write a command (`commands/<subject>.py`):

    @command("cancel")
    @click.argument("ids", nargs=-1, required=True, metavar="ID...")
    def cancel(app: App, ids: tuple[str, ...]) -> Result:
        \"\"\"Cancel jobs. A running job is stopped with all of its processes.

        Examples:
            # cancel a waiting job, or stop a running one
            queuectl cancel 7f3a
        \"\"\"
        outcome = control.cancel(app.open_store(), ids)
        return Done(outcome.done, refused=outcome.refused, verb="cancelled")

1. Add a line to the table in `commands/__init__.py`: module, attribute, one line of help, section, and another name, if
   other tools have one (`alias`). Nothing else imports the module.
2. Parse, call one use-case, return a Result (`render.py`): `Table`, `Stream`, `Details`, `Lines`, `Done`, `Raw`,
   `Nothing`. The renderer prints it as a table, JSON or bare ids; a command never looks at `--json` or `--quiet`.
3. `app.open_store()` opens the database to write and creates it, `app.open_enqueuer()` only adds jobs (loads faster),
   `app.open_reads()` reads and creates nothing. `app.settings` are the settings in force.
4. Raise errors of `queuectl.errors`: the class decides the exit status, `errors.py` prints them.
5. `app.say(...)` prints a message on stderr, on a terminal only. Nothing prints in any other way.
6. Help starts with a verb or a noun and has at most 60 characters, with the default: tests/test_language.py. Many options
   are grouped (`option_groups`). What users of other tools type belongs into `errors.py`.
7. Every command has `--home --db --json --quiet --no-color -h`. Options of the same meaning have the same name:
   `--queue/-q`, `--yes`, `--timeout`, `--all`.
"""
