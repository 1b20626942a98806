#!/usr/bin/env python3
"""Prints what is wrong with the tree, a line each; exit status 1 if anything is.

    ./dev check            format, include direction, file sizes, unfinished marks
    ./dev check --headers  also: every header compiles alone (needs a configured build/release)
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Rooms, lowest first: a file may include its own room and those before it (docs/architecture.md).
ROOMS = ["base", "text", "net", "tokenizer", "template", "grammar", "parser", "message", "engine", "router", "pipeline",
         "service", "api", "observe", "app"]
MAX_LINES = 500
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns], cwd=ROOT,
                         capture_output=True, text=True, check=True)
    return [ROOT / name for name in out.stdout.split("\n") if name and (ROOT / name).exists()]


def sources():
    return tracked("src/*.cc", "src/*.h", "bench/*.cc", "bench/*.h", "fuzz/*.cc", "tests/*.cc")


def check_format():
    for path in sources():
        result = subprocess.run(["clang-format-19", "--dry-run", "-Werror", str(path)], capture_output=True, text=True)
        if result.returncode:
            line = re.search(r":(\d+):\d+: error", result.stderr)
            yield f"{path.relative_to(ROOT)}:{line.group(1) if line else 1}: not formatted (./dev fmt)"


def include_graph():
    return {path: [ROOT / "src" / name for name in INCLUDE.findall(path.read_text(encoding="utf-8"))]
            for path in tracked("src/*.cc", "src/*.h")}


def check_includes():
    graph = include_graph()
    room = lambda path: path.relative_to(ROOT / "src").parts[0]
    for path, targets in graph.items():
        for target in targets:
            if not target.exists():
                yield f"{path.relative_to(ROOT)}: includes \"{target.relative_to(ROOT / 'src')}\", which does not exist"
            elif ROOMS.index(room(target)) > ROOMS.index(room(path)):
                yield f"{path.relative_to(ROOT)}: {room(path)} is below {room(target)}, but includes {target.name}"
    state = {}

    def visit(path, trail):
        if state.get(path) == "done":
            return None
        if state.get(path) == "open":
            return trail[trail.index(path):] + [path]
        state[path] = "open"
        for target in graph.get(path, []):
            found = visit(target, trail + [path])
            if found:
                return found
        state[path] = "done"
        return None

    for path in graph:
        cycle = visit(path, [])
        if cycle:
            yield "include cycle: " + " -> ".join(str(p.relative_to(ROOT / "src")) for p in cycle)
            return


def check_sizes():
    for path in sources() + tracked("scripts/*", "tests/*.py", "bench/*.py", "tools/*.py"):
        lines = path.read_text(encoding="utf-8", errors="replace").count("\n")
        if lines > MAX_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines; one concept a file, {MAX_LINES} at most"


def check_marks():
    for path in sources():
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
            if UNFINISHED.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: unfinished: {line.strip()[:80]}"


def check_headers():
    """Each header alone, with the flags of some source of its room."""
    database = ROOT / "build/release/compile_commands.json"
    if not database.exists():
        yield "build/release is not configured: run ./dev build first"
        return
    flags = {}
    for entry in json.load(open(database)):
        relative = pathlib.Path(entry["file"])
        if (ROOT / "src") in relative.parents:
            room = relative.relative_to(ROOT / "src").parts[0]
            words = shlex.split(entry["command"])
            if words[0].endswith("ccache"):
                words = words[1:]
            end = words.index("-o")
            flags.setdefault(room, words[:end])

    def compile_alone(path):
        words = flags.get(path.relative_to(ROOT / "src").parts[0])
        if words is None:
            return None
        result = subprocess.run([*words, "-fsyntax-only", "-x", "c++", "-Wno-pragma-once-outside-header", str(path)],
                                capture_output=True, text=True, cwd=ROOT / "build/release")
        if result.returncode:
            first = next((l for l in result.stderr.split("\n") if "error" in l), result.stderr[:200])
            return f"{path.relative_to(ROOT)}: does not compile alone: {first}"
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from filter(None, pool.map(compile_alone, tracked("src/*.h")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headers", action="store_true")
    options = parser.parse_args()
    checks = [check_format, check_includes, check_sizes, check_marks] + ([check_headers] if options.headers else [])
    wrong = 0
    for check in checks:
        for line in check():
            print(line)
            wrong += 1
    if wrong:
        print(f"{wrong} faults")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
