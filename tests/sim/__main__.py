"""python -m tests.sim [--seeds N] [--from N] | --seed N: play many seeds for as long as you like, or one and see all of it."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.sim.runner import PORTION, failures_from, theatre


def _many(first: int, count: int) -> int:
    begin, failed = time.monotonic(), 0
    starts = range(first, first + count, PORTION)
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        for number, failures in enumerate(pool.map(failures_from, starts), 1):
            for failure in failures:
                print(f"{failure}\n", flush=True)
            failed += len(failures)
            print(f"\r{number * PORTION} seeds, {failed} failed", end="", file=sys.stderr, flush=True)
    print(f"\n{len(starts) * PORTION} seeds in {time.monotonic() - begin:.1f} s, {failed} failed")
    return 1 if failed else 0


def _one(seed: int, *, quiet: bool) -> int:
    with theatre() as stage:
        played = stage.play(seed)
    if quiet:
        print(played.digest)
        return 0
    print(played.failure or "\n".join([*played.trace, f"seed {seed}: nothing to complain about"]))
    return 1 if played.failure else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim")
    parser.add_argument("--seeds", type=int, default=2000, help=f"how many, in portions of {PORTION} (default: 2000)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, with all that happens")
    parser.add_argument("--digest", action="store_true", help="of that one only the digest of all that happens")
    given = parser.parse_args()
    if given.seed is not None:
        return _one(given.seed, quiet=given.digest)
    return _many(given.first, given.seeds)


if __name__ == "__main__":
    sys.exit(main())
