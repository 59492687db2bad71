"""100,000 lines by `enqueue --for-each`, compared with the same commands by `enqueue --file`."""

from __future__ import annotations

from _bench import Figure, Lab, Report, main, median, paired, rounds

LINES = 100_000
ROUNDS, SECONDS = 5, 60.0
SLOWEST = 3.0  # seconds, for all lines
TARGET = 0.7


def for_each(lab: Lab) -> Report:
    names, commands = lab.path / "names", lab.path / "commands"
    names.write_text("".join(f"in/image {number}.jpg\n" for number in range(LINES)), encoding="utf-8")
    commands.write_text(
        "".join(f"convert 'in/image {number}.jpg' 'in/image {number}'.png\n" for number in range(LINES)),
        encoding="utf-8",
    )
    template = "convert {} {.}.png"
    samples = rounds(
        {
            "file": lambda: lab.time("enqueue", "--file", str(commands), home=lab.new_home()),
            "each": lambda: lab.time("enqueue", "--for-each", str(names), template, home=lab.new_home()),
        },
        count=ROUNDS,
        seconds=SECONDS,
    )
    report = Report(f"{LINES:,} lines")
    for name, words in {"file": "enqueue --file", "each": "enqueue --for-each"}.items():
        seconds = median(samples[name])
        report.row(words, f"{LINES / seconds:,.0f}/s", f"{seconds:.2f} s")
    report.figure(Figure("--for-each / --file", paired(samples, "file", "each"), TARGET, more_is_better=True))
    report.figure(Figure("--for-each, seconds", median(samples["each"]), SLOWEST, more_is_better=False))
    return report


if __name__ == "__main__":
    main(for_each, __doc__)
