#!/usr/bin/env python3
"""Prints the five slowest units of translation of each build folder, from what ninja recorded of the last build of each.
    scripts/slowest_units.py build/release build/asan"""
import pathlib
import sys


def main():
    for folder in map(pathlib.Path, sys.argv[1:]):
        log = folder / ".ninja_log"
        if not log.exists():
            continue
        took = {}
        for line in log.read_text(encoding="utf-8").split("\n"):
            fields = line.split("\t")
            if len(fields) == 5 and fields[3].endswith(".o"):
                took[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
        slowest = sorted(took.items(), key=lambda item: -item[1])[:5]
        print(f"slowest units of {folder}: " + ", ".join(f"{pathlib.Path(name).name.removesuffix('.o')} {seconds:.1f} s"
                                                         for name, seconds in slowest))


if __name__ == "__main__":
    main()
