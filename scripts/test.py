#!/usr/bin/env python3
"""Runs every test suite of a build and prints the total: `N passed, M failed, K skipped`.

Suites: each GoogleTest program of the build; clients, real ones against the real binary (tests/); python, the Python
module (python/tests); crosscheck, it against the reference packages on generated texts (tests/crosscheck).
Two run at once where there are two cores, and each GoogleTest program in two halves.
Exit status 1 if anything failed, or if nothing ran.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
# How many suites run at once, and in how many parts a GoogleTest program is run.
WORKERS = min(2, os.cpu_count() or 1)
# The heavy programs go first, so that none is left to run alone at the end.
HEAVY = ["tokenizer_test", "engine_test", "net_test", "template_test"]


def run_gtest(program, shard):
    """(passed, failed, skipped) of one part of a GoogleTest program; its output is shown when it fails."""
    environment = {**os.environ, "GTEST_TOTAL_SHARDS": str(WORKERS), "GTEST_SHARD_INDEX": str(shard)}
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        result = subprocess.run([program, f"--gtest_output=json:{report.name}", "--gtest_brief=1"], cwd=ROOT,
                                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace")
        try:
            data = json.load(open(report.name))
        except ValueError:
            data = None
    if data is None:
        print(result.stdout[-6000:])
        print(f"  {program.name} ended with status {result.returncode} and no report")
        return 0, 1, 0
    skipped = sum(case.get("result") == "SKIPPED" for suite in data["testsuites"] for case in suite["testsuite"])
    failed = data["failures"]
    if failed or result.returncode:
        print(result.stdout[-12000:])
        failed = max(failed, 1)
    return data["tests"] - data["failures"] - skipped, failed, skipped


def run_pytest(python, binary, folder, arguments):
    report = pathlib.Path(tempfile.mkdtemp()) / "report.xml"
    environment = {**os.environ, "PORTICO_BINARY": str(binary)}
    subprocess.run([python, "-m", "pytest", "-q", "-x" if os.environ.get("PORTICO_FAIL_FAST") else "-q", "--junitxml",
                    str(report), folder, *arguments], cwd=ROOT, env=environment)
    if not report.exists():
        return 0, 1, 0
    suite = ElementTree.parse(report).getroot().find("testsuite")
    total, failed = int(suite.get("tests")), int(suite.get("failures")) + int(suite.get("errors"))
    skipped = int(suite.get("skipped"))
    return total - failed - skipped, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="only suites whose name contains this")
    parser.add_argument("--build", default="build/release", help="the build folder")
    parser.add_argument("--no-clients", action="store_true", help="leave the Python and JavaScript tests out")
    parser.add_argument("--skip", action="append", default=[], metavar="SUITE", help="leave this one out; may be repeated")
    options = parser.parse_args()
    build = (ROOT / options.build).resolve()

    python = ROOT / "build/test-env/bin/python"
    # The module is built without a sanitizer, so its own suites run once; the clients take gRPC stubs from it.
    clients = not options.no_clients and options.filter in "clients"
    alone = options.no_clients or "PORTICO_SANITIZED" in os.environ
    module_suites = {"python": "python/tests", "crosscheck": "tests/crosscheck"}
    wanted = [] if alone else [name for name in module_suites if options.filter in name]

    jobs = []  # (suite, what runs a part of it)
    for name, script in [("test environment", "test_environment.sh"), ("python module", "python_module.sh")]:
        if (clients or wanted) and subprocess.run([str(ROOT / "scripts" / script)]).returncode:
            print(f"[dev] scripts/{script} failed: the suites that need it are left out", flush=True)
            jobs.append((name, lambda: (0, 1, 0)))
            clients, wanted = clients and name == "python module", []
    if clients:
        jobs.append(("clients", lambda: run_pytest(python, build / "portico", "tests", ["--ignore=tests/crosscheck"])))
    programs = sorted(build.glob("*_test"), key=lambda p: ((HEAVY + [p.name]).index(p.name), p.name))
    for program in programs:
        if options.filter in program.name and program.name not in options.skip:
            jobs += [(program.name, lambda program=program, shard=shard: run_gtest(program, shard))
                     for shard in range(WORKERS)]
    for name in wanted:
        jobs.append((name, lambda name=name: run_pytest(python, build / "portico", module_suites[name], [])))

    def timed(run):
        start = time.time()
        return *run(), time.time() - start

    totals = [0, 0, 0]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        parts = {}  # of each suite, in the order of `jobs`
        for name, run in jobs:
            parts.setdefault(name, []).append(pool.submit(timed, run))
        for name, running in parts.items():
            *counts, seconds = map(sum, zip(*(part.result() for part in running)))
            totals = [total + count for total, count in zip(totals, counts)]
            print("%-24s %5d passed %4d failed %4d skipped  (%.1f s)" % (name, *counts, seconds), flush=True)

    print("%d passed, %d failed, %d skipped" % tuple(totals))
    sys.exit(1 if totals[1] or totals[0] == 0 else 0)


if __name__ == "__main__":
    main()
