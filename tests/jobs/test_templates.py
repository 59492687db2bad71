from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import InvalidInput, UsageError
from queuectl.jobs.templates import TemplateLine, argv_template, find_placeholders, shell_quote, shell_template
from tests.messages import assert_readable


def argv(*words: str, line: str = "a b/c d.tar.gz", columns: list[str] | None = None) -> list[str]:
    filled = argv_template(words, columns=columns is not None)(TemplateLine(line, 7, columns))["argv"]
    assert isinstance(filled, list)
    return filled


def test_a_template_inserts_a_line_and_its_parts() -> None:
    assert argv("x", "{}", "{/}", "{.}", "{n}") == ["x", "a b/c d.tar.gz", "c d.tar.gz", "a b/c d.tar", "7"]


def test_columns_are_counted_from_one() -> None:
    assert argv("{2}-{1}", "{}", line="a,b", columns=["a", "b"]) == ["b-a", "a,b"]


@pytest.mark.parametrize(
    "line, base, stem",
    [
        ("photo.jpg", "photo.jpg", "photo"),
        ("a.d/photo", "photo", "a.d/photo"),
        ("a/.profile", ".profile", "a/.profile"),
        ("a/b/", "b", "a/b/"),
        ("/", "/", "/"),
        ("..", "..", ".."),
        ("a.", "a.", "a"),
        ("...x", "...x", "...x"),
    ],
)
def test_base_names_and_extensions(line: str, base: str, stem: str) -> None:
    assert argv("x", "{/}", "{.}", line=line) == ["x", base, stem]


def test_an_argv_without_a_placeholder_ends_with_the_line() -> None:
    assert argv("gzip", "-k") == ["gzip", "-k", "a b/c d.tar.gz"]


def test_a_placeholder_in_an_argv_may_be_anywhere_and_is_not_quoted() -> None:
    assert argv("x", "--in={}", "'{}'", line="a 'b'") == ["x", "--in=a 'b'", "'a 'b''"]


def test_a_backslash_makes_it_plain_text() -> None:
    assert argv("x", "\\{}", "\\{1}", "{n}") == ["x", "{}", "{1}", "7"]


def test_a_shell_template_quotes_the_line() -> None:
    filled = shell_template("gzip <{} >{/}.gz", columns=False)(TemplateLine("it's/a", 1, None))
    assert filled == {"command": "gzip <'it'\\''s/a' >'a'.gz"}


@pytest.mark.parametrize("word", ["", "a", "2", "if", "a=b"])
def test_a_shell_template_quotes_every_line(word: str) -> None:
    assert shell_quote(word) == f"'{word}'"


def test_a_shell_template_without_a_placeholder_is_rejected() -> None:
    with pytest.raises(UsageError, match="no placeholder") as raised:
        shell_template("gzip \\{}", columns=False)
    assert_readable(raised.value)


def test_a_missing_column_is_rejected() -> None:
    with pytest.raises(InvalidInput) as raised:
        argv("x", "{3}", line="a,b", columns=["a", "b"])
    assert raised.value.message == "{3}: the line has 2 columns"


def test_a_column_without_a_separator_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="there is no --colsep"):
        argv("x", "a{1}")


def names(text: str, *, columns: bool = True) -> list[str]:
    return [found.name for found in find_placeholders(text, columns=columns)]


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
def test_a_placeholder_elsewhere_is_rejected_with_its_position(text: str, where: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        find_placeholders(text, columns=True)
    assert raised.value.message == where
    assert_readable(raised.value)


@pytest.mark.parametrize("text", ["echo 'a {} b' c", 'echo "a {} b" c', "echo '{}'"])
def test_the_suggested_command_has_the_intended_meaning(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        find_placeholders(text, columns=True)
    instead = raised.value.hint.partition("after it: ")[2]
    command = shell_template(instead, columns=False)(TemplateLine("x 'y", 1, None))["command"]
    shown = subprocess.run(["/bin/sh", "-c", str(command)], capture_output=True, text=True, check=True).stdout
    assert shown == text.removeprefix("echo ").replace("'", "").replace('"', "").replace("{}", "x 'y") + "\n"


def test_the_hint_for_a_long_command_has_a_short_example() -> None:
    with pytest.raises(InvalidInput) as raised:
        find_placeholders(f"echo '{'a' * 500} {{}}'", columns=True)
    assert raised.value.hint.endswith("after it: 'a '{}' b'")


def test_without_columns_a_number_in_quotes_is_plain_text() -> None:
    assert names("awk '{1}' {} | grep -E \"a{2}\" # {3}", columns=False) == [""]


def test_without_columns_a_number_outside_quotes_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="there is no --colsep"):
        find_placeholders("echo {1}", columns=False)
    assert names("echo \\{1}", columns=False) == []


# ── what a real shell makes of it ───────────────────────────────────────────────────────────────────────────────────

LINES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NASTY = st.text(st.sampled_from("'\"\\$`(){}[]<>|&;#*?~=! \t\n-aé2"), max_size=12)
# Pieces of commands. Many combinations are invalid for a shell, too: only those it accepts are checked.
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
    """The words that a shell parses, each with a NUL after it; None if it rejects the command."""
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, timeout=20, cwd="/", env={"a": "A"})
    return done.stdout if done.returncode == 0 and not done.stderr else None


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINES | NASTY, min_size=1, max_size=20))
def test_the_shell_gets_any_line_as_exactly_one_word(lines: list[str]) -> None:
    template = shell_template("printf '%s\\0' {} x{}y", columns=False)
    script = "\n".join(str(template(TemplateLine(line, 1, None))["command"]) for line in lines)
    assert words(script) == b"".join(f"{line}\0x{line}y\0".encode() for line in lines)


@settings(max_examples=300, deadline=None)
@given(before=PIECES, after=PIECES)
def test_a_line_is_never_run_as_a_command(before: str, after: str) -> None:
    """The line prints something if any part of it is run as a command."""
    try:
        template = shell_template(f": {before}{{}}{after}", columns=False)
    except UsageError:
        return
    evil = "'; echo PWNED; '\"; echo PWNED; \"`echo PWNED >&2`$(echo PWNED >&2)\necho PWNED\n#\\"
    done = subprocess.run(
        ["/bin/sh", "-c", str(template(TemplateLine(evil, 1, None))["command"])],
        capture_output=True,
        cwd="/",
        timeout=20,
    )
    printed = done.stdout.splitlines() + done.stderr.splitlines()
    assert b"PWNED" not in printed
