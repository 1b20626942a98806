#!/usr/bin/env python3
"""Runs every test suite of a build and prints the total: `N passed, M failed, K skipped`.

Suites: each GoogleTest program of the build; clients, real ones against the real binary (tests/); python, the Python
module (python/tests); crosscheck, it against the reference packages on generated texts (tests/crosscheck).
Where there are two cores three parts of the clients run at once, two with a sanitizer, and more while the processors are idle
(scripts/places.py); beside them a GoogleTest program, each in two halves, and waits: the files of the clients that wait nearly all of
their time. What a sanitizer's run leaves out: scripts/sanitized.py.
A failed test is run once more, alone, when all suites are over; if it passes then, it is listed as flaky (scripts/suites.py).
Exit status 1 if anything failed, or if nothing ran.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import places
import sanitized
import suites

ROOT = pathlib.Path(__file__).resolve().parent.parent
# In how many parts a GoogleTest program is run.
WORKERS = min(2, os.cpu_count() or 1)
# How many parts of the suites of Python always run at once: they wait half of their time, less for programs with a sanitizer.
CLIENTS_AT_ONCE = WORKERS if "PORTICO_SANITIZED" in os.environ else WORKERS + 1
# And how many while the processors are idle.
CLIENTS_WHILE_IDLE = 4 * WORKERS
# Files of tests/ whose tests wait for limits and graces to pass, and compute little; into how many parts they are dealt.
WAITS = {"test_gateway_stalls.py": 4, "test_gateway_vllm_stalls.py": 2, "test_admission.py": 1, "test_gateway_pauses.py": 2, "test_test_runner.py": 1}
# Files that take long: the first to run, so that none is left to run alone at the end. Where tests have run on this machine, their last
# run says which (seconds_of).
LONG = [f"test_{name}.py" for name in """omni_chaos cancellation gateway_chaos omni_bars omni omni_processes omni_remote hostile_grammars
    sglang_tcp sglang gateway_hostile tool_constraints omni_faults sglang_controls h2spec""".split()]
# The heavy programs go first, so that none is left to run alone at the end.
HEAVY = ["tokenizer_test", "engine_test", "net_test", "template_test"]


def seconds_of(build):
    """The file that has the seconds that each file of tests/ took last with this build, of any clone on this machine."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / f"portico/client-seconds-{build.name}.json"


def read_seconds(path):
    try:
        return {name: float(seconds) for name, seconds in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_seconds(path, tests):
    seconds = collections.Counter()
    for took, test in tests:
        seconds[test.split("::")[0].rpartition("/")[2]] += took
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    known = {**read_seconds(path), **{name: round(took, 1) for name, took in seconds.items()}}
    part.write_text(json.dumps(known, indent=0, sort_keys=True), encoding="utf-8")
    part.replace(path)


def programs_of(build, options):
    only = dict(one.split("=", 1) for one in options.only)
    paths = [path for path in build.glob("*_test") if options.filter in path.name and path.name not in options.skip]
    paths.sort(key=lambda path: ((HEAVY + [path.name]).index(path.name), path.name))
    return [suites.GoogleTest(path, WORKERS, only.get(path.name)) for path in paths]


def clients_of(build, options):
    """The suites of Python, those that take longest first."""
    if options.no_clients:
        return []
    python, binary, checked = ROOT / "build/test-env/bin/python", build / "portico", "PORTICO_SANITIZED" in os.environ
    found = []
    # The module is built without a sanitizer, so its own suites run once; the clients take gRPC stubs from it.
    for name, folder in {"crosscheck": "tests/crosscheck", "python": "python/tests"}.items():
        if not checked and options.filter in name:
            found.append(suites.Pytest(name, python, binary, folder, WORKERS))
    if options.filter in "clients":
        parts = (5 if checked else 10) * WORKERS  # each starts servers of its own, which takes a program with a sanitizer long
        idle = sanitized.files_left_out()
        found.append(suites.Pytest("clients", python, binary, "tests", parts, checked, without=idle | WAITS.keys(),
                                   first=[name for name in LONG if name not in idle], seconds=read_seconds(seconds_of(build))))
        if waits := {name: count for name, count in WAITS.items() if name not in idle}:
            found.append(suites.Pytest("waits", python, binary, "tests", reports=checked, only=waits))
    return found


def make_environment(clients):
    """What `clients` need; those that can run, and an Outcome for what could not be made."""
    broken = {}
    for name, script in [("test environment", "test_environment.sh"), ("python module", "python_module.sh")]:
        if clients and subprocess.run([str(ROOT / "scripts" / script)]).returncode:
            message = f"scripts/{script} failed: the suites that need it are left out"
            broken[name] = suites.Outcome(failures=[suites.Failure(name, message, True)])
            clients = [suite for suite in clients if name == "python module" and suite.folder == "tests"]
    return clients, broken


def by_group(tests):
    groups = collections.Counter()
    for seconds, test in tests:  # a file of Python tests, or a suite of a GoogleTest program
        groups[re.split(r"::|\.(?!py)", test)[0]] += seconds
    return ", ".join(f"{group} {seconds:.0f} s" for group, seconds in groups.most_common(25))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="only suites whose name contains this")
    parser.add_argument("--build", default="build/release", help="the build folder")
    parser.add_argument("--no-clients", action="store_true", help="leave the Python and JavaScript tests out")
    parser.add_argument("--skip", action="append", default=[], metavar="SUITE", help="leave this one out; may be repeated")
    parser.add_argument("--only", action="append", default=[], metavar="SUITE=FILTER", help="of this suite, only these tests (GoogleTest's filter)")
    options = parser.parse_args()

    build = (ROOT / options.build).resolve()
    found, clients_found = programs_of(build, options), clients_of(build, options)
    began, room, tasks = time.time(), places.Places(CLIENTS_AT_ONCE, CLIENTS_WHILE_IDLE), collections.deque()

    # They compute all of the time: one takes what the clients leave.
    programs_room = places.Places(1 if clients_found else WORKERS, WORKERS)

    def run_program(suite, part):
        with programs_room:
            return suite.run(part)

    def run_clients():
        while True:
            with room:
                if not tasks:
                    return
                suite, part, future = tasks.popleft()
                try:
                    future.set_result(suite.run(part))
                except BaseException as error:
                    future.set_exception(error)

    with (concurrent.futures.ThreadPoolExecutor(CLIENTS_WHILE_IDLE) as clients,
          concurrent.futures.ThreadPoolExecutor(sum(WAITS.values())) as waits,
          concurrent.futures.ThreadPoolExecutor(WORKERS) as programs):
        parts = {suite: [programs.submit(run_program, suite, part) for part in suite.parts()] for suite in found}
        clients_found, outcomes = make_environment(clients_found)
        for suite in clients_found:
            if suite.name == "waits":
                parts[suite] = [waits.submit(suite.run, part) for part in suite.parts()]
            else:
                parts[suite] = [concurrent.futures.Future() for _ in suite.parts()]
                tasks.extend(zip(itertools.repeat(suite), suite.parts(), parts[suite]))
        programs.submit(room.more)
        for _ in range(CLIENTS_WHILE_IDLE):
            clients.submit(run_clients)
        for suite, running in parts.items():
            outcomes[suite.name] = outcome = suites.Outcome()
            for part in running:
                outcome.add(part.result())
            print("%-24s %5d passed %4d failed %4d skipped  (%.1f s, CPU %.1f s)" % (
                suite.name, outcome.passed, len(outcome.failures), outcome.skipped, outcome.seconds, outcome.cpu), flush=True)
    if "clients" in outcomes and not outcomes["clients"].failures:
        with contextlib.suppress(OSError):  # without, the next run deals its parts otherwise
            write_seconds(seconds_of(build), outcomes["clients"].slow)
    for suite in parts:
        suites.run_again(suite, outcomes[suite.name])

    everything = suites.Outcome()
    for outcome in outcomes.values():
        everything.add(outcome)
    print("slowest: " + ", ".join(f"{test} {seconds:.1f} s" for seconds, test in sorted(everything.slow, reverse=True)[:5]))
    print("slowest groups: " + by_group(everything.slow))
    if everything.costly:
        print("most CPU: " + by_group(everything.costly))
    print("%.0f s, CPU %.0f s" % (time.time() - began, everything.cpu))
    for failure in everything.failures:
        lines = failure.message.strip().split("\n")
        print("\n".join([f"failed: {failure.test}", *(f"    {line[:200]}" for line in lines[:6])]))
    for outcome in outcomes.values():
        for test in outcome.flaky:
            print(f"flaky: {test}")
    print("%d passed, %d failed, %d skipped" % (everything.passed, len(everything.failures), everything.skipped))
    sys.exit(1 if everything.failures or everything.passed == 0 else 0)


if __name__ == "__main__":
    main()
