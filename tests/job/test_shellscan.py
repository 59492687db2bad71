"""Where a placeholder may stand in a command for the shell."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import InvalidInput, UsageError
from queuectl.job.shellscan import find
from queuectl.job.template import Line, ShellTemplate
from tests.job.said import assert_well_said


def names(text: str, *, columns: bool = True) -> list[str]:
    return [found.name for found in find(text, columns=columns)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("convert {} {.}.png", ["", "."]),
        ("{/}{n}{1}{99}", ["/", "n", "1", "99"]),
        ("echo {a} {0} {100} {-1} { } {//} {", []),
        ("echo 'a b' {} \"c d\" {}", ["", ""]),
        ('echo "a\\"b" {} \'a\\\' {}', ["", ""]),
        ("echo \\{} \\\\{} \\' {}", ["", ""]),
        ("echo $(basename {}) ${HOME}/{} $HOME/{} ${#} {}", ["", "", "", ""]),
        ('echo "${HOME} $HOME" {}', [""]),
        ("a#b {} x#{} ${a}#{}", ["", "", ""]),
        ("true # it's a comment\necho {}", [""]),
        ("a\\\n {} \\\n# it's\n {}", ["", ""]),
        ("{}#{}", ["", ""]),
        ("", []),
        ("\\", []),
    ],
)
def test_a_placeholder_outside_quotes_is_found(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    "text, where",
    [
        ("echo '{}'", "{} at character 7: inside quotes, from character 6 on"),
        ('echo "a {.}"', "{.} at character 9: inside quotes, from character 6 on"),
        ("echo 'a' 'b {1}", "{1} at character 13: inside quotes, from character 10 on"),
        ('echo "\\"{}"', "{} at character 9: inside quotes, from character 6 on"),
        ("echo ${x}'${y}{}'", "{} at character 15: inside quotes, from character 10 on"),
        ("a\\\n#'\n{}", "{} at character 7: inside quotes, from character 5 on"),
        ("true # {}", "{} at character 8: inside a comment, from character 6 on"),
        ("true;# {}", "{} at character 8: inside a comment, from character 6 on"),
        ("echo `ls {}`", "{} at character 10: behind `, from character 6 on, where it may not be one word"),
        ("echo `x` {}", "{} at character 10: behind `, from character 6 on, where it may not be one word"),
        ("echo ${x:-{}}", "{} at character 11: behind ${, from character 6 on, where it may not be one word"),
        ("echo ${}", "{} at character 7: behind ${, from character 6 on, where it may not be one word"),
        ("cat <<END\n{}\nEND", "{} at character 11: behind <<, from character 5 on, where it may not be one word"),
        ("echo $'a' {}", "{} at character 11: behind $', from character 6 on, where it may not be one word"),
        ("echo $((1 + {}))", "{} at character 13: behind $(, from character 6 on, where it may not be one word"),
        ("(( {} ))", "{} at character 4: behind ((, from character 1 on, where it may not be one word"),
        ("echo $[1 + {}]", "{} at character 12: behind $[, from character 6 on, where it may not be one word"),
        ('echo "$(x "{}")"', "{} at character 12: behind $(, from character 7 on, where it may not be one word"),
        ('echo "`x` {}"', "{} at character 11: behind `, from character 7 on, where it may not be one word"),
    ],
)
def test_elsewhere_it_is_refused_with_its_position(text: str, where: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        find(text, columns=True)
    assert raised.value.message == where
    assert_well_said(raised.value)


@pytest.mark.parametrize("text", ["echo 'a {} b' c", 'echo "a {} b" c', "echo '{}'"])
def test_what_to_write_instead_is_what_was_meant(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        find(text, columns=True)
    instead = raised.value.hint.partition("again: ")[2]
    command = ShellTemplate(instead, columns=False).fill(Line("x 'y", 1, None))["command"]
    shown = subprocess.run(["/bin/sh", "-c", str(command)], capture_output=True, text=True, check=True).stdout
    assert shown == text.removeprefix("echo ").replace("'", "").replace('"', "").replace("{}", "x 'y") + "\n"


def test_of_a_long_command_only_the_idea_is_shown() -> None:
    with pytest.raises(InvalidInput) as raised:
        find(f"echo '{'a' * 500} {{}}'", columns=True)
    assert raised.value.hint.endswith("again: 'a '{}' b'")


def test_without_columns_a_number_in_quotes_is_plain_text() -> None:
    assert names("awk '{1}' {} | grep -E \"a{2}\" # {3}", columns=False) == [""]


def test_without_columns_a_number_outside_quotes_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no --colsep"):
        find("echo {1}", columns=False)
    assert names("echo \\{1}", columns=False) == []


# ── what a real shell makes of it ───────────────────────────────────────────────────────────────────────────────────

LINES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NASTY = st.text(st.sampled_from("'\"\\$`(){}[]<>|&;#*?~=! \t\n-aé2"), max_size=12)
# Pieces of commands, of which most that come out are wrong for a shell too: only what it takes counts.
PIECES = st.lists(
    st.sampled_from(
        [
            "{}",
            "a",
            " ",
            "'",
            '"',
            "\\",
            "$",
            "`",
            "#",
            "\n",
            "${a}",
            "${",
            "}",
            "$(",
            ")",
            "((",
            "<<E",
            "$'",
            "2",
            ">&2 ",
        ]
    ),
    max_size=10,
).map("".join)


def words(script: str) -> bytes | None:
    """What a shell makes of it: each word with a NUL behind it; None if it does not take it."""
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, timeout=20, cwd="/", env={"a": "A"})
    return done.stdout if done.returncode == 0 and not done.stderr else None


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINES | NASTY, min_size=1, max_size=20))
def test_whatever_the_line_the_shell_sees_exactly_that_one_word(lines: list[str]) -> None:
    template = ShellTemplate("printf '%s\\0' {} x{}y", columns=False)
    script = "\n".join(str(template.fill(Line(line, 1, None))["command"]) for line in lines)
    assert words(script) == b"".join(f"{line}\0x{line}y\0".encode() for line in lines)


@settings(max_examples=300, deadline=None)
@given(before=PIECES, after=PIECES)
def test_whatever_the_template_a_line_is_never_a_command(before: str, after: str) -> None:
    """A line that would print if any of it were ever read as a command."""
    try:
        template = ShellTemplate(f": {before}{{}}{after}", columns=False)
    except UsageError:
        return
    evil = "'; echo PWNED; '\"; echo PWNED; \"`echo PWNED >&2`$(echo PWNED >&2)\necho PWNED\n#\\"
    done = subprocess.run(
        ["/bin/sh", "-c", str(template.fill(Line(evil, 1, None))["command"])], capture_output=True, cwd="/", timeout=20
    )
    printed = done.stdout.splitlines() + done.stderr.splitlines()
    assert b"PWNED" not in printed
