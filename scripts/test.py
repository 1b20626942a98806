#!/usr/bin/env python3
"""Runs every test suite of a build and prints the total: `N passed, M failed, K skipped`.

Suites: each GoogleTest program of the build; clients, real ones against the real binary (tests/); python, the Python
module (python/tests); crosscheck, it against the reference packages on generated texts (tests/crosscheck).
Where there are two cores three parts of the clients run at once, two with a sanitizer, and beside them a GoogleTest program, in two halves,
and waits: the files of the clients that wait nearly all of their time. When the GoogleTest programs are over, one part more of the clients.
A failed test is run once more, alone, when all suites are over; if it passes then, it is listed as flaky (scripts/suites.py).
Exit status 1 if anything failed, or if nothing ran.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import threading

import suites

ROOT = pathlib.Path(__file__).resolve().parent.parent
# In how many parts a GoogleTest program is run.
WORKERS = min(2, os.cpu_count() or 1)
# How many parts of the suites of Python run at once: they wait half of their time, less for programs with a sanitizer.
CLIENTS_AT_ONCE = WORKERS if "PORTICO_SANITIZED" in os.environ else WORKERS + 1
# Files of tests/ whose tests wait for limits and graces to pass, and compute little.
WAITS = ["test_gateway_stalls.py", "test_gateway_vllm_stalls.py", "test_admission.py", "test_cancellation.py"]
# The heavy programs go first, so that none is left to run alone at the end.
HEAVY = ["tokenizer_test", "engine_test", "net_test", "template_test"]


def chosen(options):
    """The suites to run, and an Outcome for each that cannot be."""
    build = (ROOT / options.build).resolve()
    python = ROOT / "build/test-env/bin/python"
    sanitized = "PORTICO_SANITIZED" in os.environ
    # The module is built without a sanitizer, so its own suites run once; the clients take gRPC stubs from it.
    clients = not options.no_clients and options.filter in "clients"
    module_suites = {"python": "python/tests", "crosscheck": "tests/crosscheck"}
    wanted = [] if options.no_clients or sanitized else [name for name in module_suites if options.filter in name]

    found, broken = [], {}
    for name, script in [("test environment", "test_environment.sh"), ("python module", "python_module.sh")]:
        if (clients or wanted) and subprocess.run([str(ROOT / "scripts" / script)]).returncode:
            message = f"scripts/{script} failed: the suites that need it are left out"
            broken[name] = suites.Outcome(failures=[suites.Failure(name, message, True)])
            clients, wanted = clients and name == "python module", []
    if clients:
        found.append(suites.Pytest("clients", python, build / "portico", "tests", 8 * WORKERS, sanitized, without=WAITS))
        found.append(suites.Pytest("waits", python, build / "portico", "tests", reports=sanitized, only=WAITS))
    for program in sorted(build.glob("*_test"), key=lambda p: ((HEAVY + [p.name]).index(p.name), p.name)):
        if options.filter in program.name and program.name not in options.skip:
            found.append(suites.GoogleTest(program, WORKERS, dict(only.split("=", 1) for only in options.only).get(program.name)))
    found += [suites.Pytest(name, python, build / "portico", module_suites[name]) for name in wanted]
    return found, broken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="only suites whose name contains this")
    parser.add_argument("--build", default="build/release", help="the build folder")
    parser.add_argument("--no-clients", action="store_true", help="leave the Python and JavaScript tests out")
    parser.add_argument("--skip", action="append", default=[], metavar="SUITE", help="leave this one out; may be repeated")
    parser.add_argument("--only", action="append", default=[], metavar="SUITE=FILTER", help="of this suite, only these tests (GoogleTest's filter)")
    options = parser.parse_args()

    found, outcomes = chosen(options)
    # GoogleTest programs compute all of the time: one takes what the clients leave.
    beside = any(isinstance(suite, suites.Pytest) for suite in found)
    room = threading.Semaphore(CLIENTS_AT_ONCE)

    def run_client(suite, part):
        with room:
            return suite.run(part)

    with (concurrent.futures.ThreadPoolExecutor(CLIENTS_AT_ONCE + 1) as clients,
          concurrent.futures.ThreadPoolExecutor(2) as waits,
          concurrent.futures.ThreadPoolExecutor(1 if beside else WORKERS) as programs):
        parts = {}
        for suite in found:
            if isinstance(suite, suites.GoogleTest):
                parts[suite] = [programs.submit(suite.run, part) for part in suite.parts()]
            elif suite.name == "waits":
                parts[suite] = [waits.submit(suite.run, part) for part in suite.parts()]
            else:
                parts[suite] = [clients.submit(run_client, suite, part) for part in suite.parts()]
        programs.submit(room.release)
        for suite, running in parts.items():
            outcomes[suite.name] = outcome = suites.Outcome()
            for part in running:
                outcome.add(part.result())
            print("%-24s %5d passed %4d failed %4d skipped  (%.1f s)" % (
                suite.name, outcome.passed, len(outcome.failures), outcome.skipped, outcome.seconds), flush=True)
    for suite in found:
        suites.run_again(suite, outcomes[suite.name])

    everything = suites.Outcome()
    for outcome in outcomes.values():
        everything.add(outcome)
    print("slowest: " + ", ".join(f"{test} {seconds:.1f} s" for seconds, test in sorted(everything.slow, reverse=True)[:5]))
    groups = collections.Counter()
    for seconds, test in everything.slow:  # a file of Python tests, or a suite of a GoogleTest program
        groups[re.split(r"::|\.(?!py)", test)[0]] += seconds
    print("slowest groups: " + ", ".join(f"{group} {seconds:.0f} s" for group, seconds in groups.most_common(12)))
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
