"""Make the pictures of docs/images from a seeded demonstration: scripts/screenshots

The dashboard is drawn by Chromium, `queuectl top` and a terminal session as SVG. Each picture has a light and a dark form.
Paths and names of this host are replaced by those of the pages.
"""

from __future__ import annotations

import asyncio
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from unittest.mock import patch

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI, TerminalTheme
from rich.text import Text

from queuectl.tui.app import Top

IMAGES = Path(__file__).parent / "images"
TOKEN = "token-of-screenshots"
SHOWN_HOME = "/home/ada/.queuectl"
CHART_SECONDS = 240  # a bar of a chart is a minute
SVG_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
THEMES: dict[str, TerminalTheme] = {"light": DEFAULT_TERMINAL_THEME, "dark": DIMMED_MONOKAI}

# Pictures of the dashboard: name, path and look.
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1440, "height": 900}
PAGES = (
    ("dashboard-light", "/", "light", DESKTOP),
    ("dashboard-dark", "/", "dark", DESKTOP),
    ("dashboard-phone", "/", "light", PHONE),
    ("jobs-light", "/jobs", "light", DESKTOP),
    ("jobs-dark", "/jobs", "dark", DESKTOP),
    ("jobs-phone", "/jobs", "dark", PHONE),
    ("job-light", "/jobs/train", "light", DESKTOP),
    ("job-dark", "/jobs/train", "dark", DESKTOP),
    ("job-phone", "/jobs/train", "light", PHONE),
    ("dead-light", "/dlq", "light", DESKTOP),
    ("queues-light", "/queues", "light", DESKTOP),
    ("queues-dark", "/queues", "dark", DESKTOP),
    ("batch-light", "/batches/thumbnails", "light", DESKTOP),
    ("schedules-dark", "/cron", "dark", DESKTOP),
)

# Programs of the jobs, as the end of a shell script.
PROGRAMS = {
    "make": "true",
    "send-mail": "sleep 0.3; [ $(($$ % 40)) -gt 0 ] || { echo 'smtp: connection to mx2.example.org timed out' >&2; exit 75; }",
    "index": "sleep 0.1",
    "convert": "sleep 1.5; [ $(($$ % 29)) -gt 0 ] || { echo 'convert: no decode delegate for this image format' >&2; exit 1; }",
    "report": "sleep 4; [ $(($$ % 3)) -gt 0 ] || { echo 'psycopg.OperationalError: connection timeout expired' >&2; exit 2; }",
    "train": """
for epoch in $(seq 40); do
  printf '\\033[1mepoch %s\\033[0m\\n' "$epoch"
  for step in $(seq 20); do printf '\\r  step %s/20' "$step"; sleep 0.4; done
  printf '\\r  \\033[32mloss 0.%s\\033[0m  accuracy 0.%s\\n' "$((900 - epoch * 20))" "$((500 + epoch * 11))"
done""",
}
SEED = (
    "queuectl queue set mail --rate 60/m",
    "queuectl queue set reports --concurrency 1 --timeout 30s",
    "queuectl queue pause newsletter",
    "queuectl enqueue --queue newsletter 'send-mail --to everyone'",
    "queuectl enqueue --id prepare --queue gpu --tag model 'make dataset'",
    "queuectl enqueue --id train --queue gpu --tag model --after prepare --timeout 6h 'train --epochs 40'",
    "queuectl enqueue --id publish --after train 'make publish'",
    "queuectl enqueue --array 1-600%3 --batch thumbnails --queue images --max-attempts 1 'convert image-$QUEUECTL_ARRAY_INDEX.png'",
    "queuectl enqueue --id import --max-attempts 1 'echo no such table >&2; exit 4'",
    "queuectl enqueue --id backup --delay 5h './backup.sh --all'",
    "queuectl cron add nightly '0 2 * * *' 'make backup'",
    "queuectl cron add mails 'every 2s' --queue mail --overlap allow 'send-mail --next'",
    "queuectl cron add search 'every 1s' --queue search --overlap allow 'index --changed'",
    "queuectl cron add reports 'every 7s' --queue reports --overlap allow --max-attempts 2 'report --daily'",
    "queuectl worker start --detach --count 6 --name bee",
    "queuectl worker start --detach --count 3 --name wasp --queue mail --queue search",
)
# The session of the terminal picture.
SESSION = (
    "queuectl enqueue --id hello 'echo hello'",
    "queuectl enqueue --id backup --max-attempts 2 --backoff-base 1 'echo no space left; exit 3'",
    "queuectl enqueue --id report --after hello --priority 5 'make report'",
    "queuectl worker start --drain --count 2",
    "queuectl list",
    "queuectl logs hello --no-markers",
)


@contextmanager
def demonstration() -> Iterator[Path]:
    """A data directory for the pictures, whose workers are stopped at the end."""
    folder = Path(tempfile.mkdtemp(prefix="queuectl-screenshots-"))
    tools = folder / "bin"
    tools.mkdir()
    for name, script in PROGRAMS.items():
        program = tools / name
        program.write_text(f'#!/bin/sh\necho "{name} $*"; {script.strip()}\n')
        program.chmod(0o755)
    try:
        yield folder
    finally:
        run("queuectl worker stop --now", folder)
        shutil.rmtree(folder, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QUEUECTL_")}
    return {
        **kept,
        "QUEUECTL_HOME": str(folder / "home"),
        "QUEUECTL_HOST": "build-1",
        "QUEUECTL_TOKEN": TOKEN,
        "PATH": os.pathsep.join((str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"])),
        "TERM": "xterm-256color",
        "COLUMNS": "100",
    }


def run(line: str, folder: Path) -> str:
    """Run a command on a terminal and return what it prints, with its colors."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["sh", "-c", f"stty cols 100; {line}"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(folder),
        cwd=folder,
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the command has ended
            break
        if not data:
            break
        printed += data
    os.close(ours)
    process.wait()
    return without_host(printed.decode(), folder)


def printed(line: str, folder: Path) -> Text:
    text = Text.from_ansi(run(line, folder).replace("\r\n", "\n"))
    text.rstrip()
    return text


def without_host(text: str, folder: Path) -> str:
    return text.replace(str(folder / "home"), SHOWN_HOME).replace(str(folder), "/home/ada")


def plain_svg(svg: str) -> str:
    """Remove fonts from other servers, and the width of text that was replaced."""
    svg = re.sub(rf'(<text[^>]*?) textLength="[^"]*"([^>]*>[^<]*{re.escape(SHOWN_HOME)})', r"\1\2", svg)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", SVG_FONT).replace("font-family: Fira Code", f"font-family: {SVG_FONT}")


def save(name: str, text: str) -> None:
    (IMAGES / name).write_text(text.rstrip() + "\n", "utf-8")


def terminal() -> None:
    with demonstration() as folder:
        lines: list[Text] = []
        for line in SESSION:
            lines += [Text(f"$ {line}", style="bold"), printed(line, folder)]
    for look, theme in THEMES.items():
        console = Console(record=True, width=100, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
        for text in lines:
            console.print(text, soft_wrap=False)
        save(f"terminal-{look}.svg", plain_svg(console.export_svg(title="queuectl", theme=theme, unique_id="terminal")))


async def top(folder: Path) -> None:
    for look, theme in THEMES.items():
        app = Top(str(folder / "home"), None)
        try:
            async with app.run_test(size=(120, 38)) as pilot:
                for _ in range(20):
                    await pilot.pause(0.1)
                themed = partialmethod(Console.export_svg, theme=theme)
                with patch.object(Console, "export_svg", themed):
                    svg = app.export_screenshot(title="queuectl top", simplify=True)
        finally:
            app.threads.close()
        save(f"top-{look}.svg", plain_svg(without_host(svg, folder)))


def dashboard(browser: Browser, url: str, folder: Path) -> None:
    for name, path, look, size in PAGES:
        context = browser.new_context(color_scheme=look, viewport=size)
        page = context.new_page()
        page.goto(f"{url.rstrip('/')}{path}?token={TOKEN}")
        page.wait_for_timeout(1500)
        page.evaluate(
            """([home, shown, folder]) => {
                const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
                while (walker.nextNode()) {
                    const text = walker.currentNode
                    text.data = text.data.replaceAll(home, shown).replaceAll(folder, "/home/ada")
                }
            }""",
            [str(folder / "home"), SHOWN_HOME, str(folder)],
        )
        page.screenshot(path=IMAGES / f"{name}.png")
        context.close()


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("scripts/screenshots needs chromium", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    terminal()
    with demonstration() as folder:
        for line in SEED:
            run(line, folder)
        time.sleep(CHART_SECONDS)
        os.environ["QUEUECTL_HOST"] = "build-1"
        asyncio.run(top(folder))
        server = subprocess.Popen(
            [sys.executable, "-m", "queuectl", "dashboard", "--port", "0", "--quiet"],
            env=environment(folder),
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
                dashboard(browser, url, folder)
                browser.close()
        finally:
            server.terminate()
            server.wait()
    for path in sorted(IMAGES.iterdir()):
        print(f"{path.relative_to(IMAGES.parent.parent)}: {path.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
