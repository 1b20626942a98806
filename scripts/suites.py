"""Runs one suite, or a part of one, and says what became of each test: GoogleTest programs and pytest folders.

A failed test may be run once more (`Suite.again`): alone, after its suite. It is flaky where exactly that test runs and passes. A crash,
a sanitizer's report, a leak, an error at teardown and an overdue suite are failures at once, and so are more than MAX_AGAIN failures.
"""
import atexit
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A suite that runs longer is ended; PORTICO_SUITE_SECONDS=0 sets no limit.
LIMIT_S = int(os.environ.get("PORTICO_SUITE_SECONDS", 900)) or None
MAX_AGAIN = 5
# A file whose tests take so long has a part of its own.
LONG_S = 15
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error: ")
# What a test says of a server that ended by itself: nothing that a second run may hide.
CRASH = re.compile(r"ended with -?\d+")
PYTEST_PARENT = ROOT / "scripts/pytest_parent.py"


@dataclasses.dataclass
class Failure:
    test: str
    message: str
    final: bool  # not to be run again


@dataclasses.dataclass
class Outcome:
    passed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)
    slow: list = dataclasses.field(default_factory=list)  # (seconds, test)
    costly: list = dataclasses.field(default_factory=list)  # (seconds of CPU, test), of Python tests
    flaky: list = dataclasses.field(default_factory=list)
    seconds: float = 0
    cpu: float = 0  # seconds, with those of all that was started and has ended

    def add(self, other):
        self.passed += other.passed
        self.skipped += other.skipped
        self.failures += other.failures
        self.slow += other.slow
        self.costly += other.costly
        self.seconds += other.seconds
        self.cpu += other.cpu


@contextlib.contextmanager
def limit(pid):
    """Within, `pid` is awaited, whose number stays its own until then: it is killed, with all of its group, where it is overdue. A list,
    which is not empty where it was."""
    overdue = []

    def end():
        overdue.append(True)
        with_signal(pid, signal.SIGTERM)
        time.sleep(5)
        with_signal(pid, signal.SIGKILL)

    timer = threading.Timer(LIMIT_S or threading.TIMEOUT_MAX, end)
    timer.daemon = True
    timer.start()
    try:
        yield overdue
    except BaseException:
        with_signal(pid, signal.SIGKILL)
        raise
    finally:
        timer.cancel()
        timer.join()


def wait(command, environment, output):
    """(exit status, seconds of CPU). Status None: it was overdue, and is killed with all that it started."""
    process = subprocess.Popen(list(map(str, command)), cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                               stderr=subprocess.STDOUT, start_new_session=True)
    with limit(process.pid) as overdue:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return None if overdue else process.returncode, used.ru_utime + used.ru_stime


def with_signal(pid, number):
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        pass


@functools.cache
def pytest_parent(python):
    """The socket of scripts/pytest_parent.py, which runs until this program ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen([python, PYTEST_PARENT, str(theirs.fileno())], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                                   pass_fds=[theirs.fileno()], start_new_session=True)

    def end():
        ours.close()
        try:
            process.wait(60)  # so that its time is counted
        except subprocess.TimeoutExpired:
            process.kill()

    atexit.register(end)
    return ours


PARENT_LOCK = threading.Lock()


def wait_pytest(python, arguments, environment):
    """The same of a pytest. Status -1, too, where nobody knows: its parent has ended or hangs."""
    with PARENT_LOCK:
        parent = pytest_parent(str(python))
    ours, theirs = socket.socketpair()
    with ours, ours.makefile("r", encoding="ascii") as told:
        with theirs:
            request = {"arguments": list(map(str, arguments)), "environment": environment, "folder": str(ROOT)}
            try:
                socket.send_fds(parent, [json.dumps(request).encode()], [theirs.fileno()])
            except OSError:
                return -1, 0
        ours.settimeout(LIMIT_S or None)
        try:
            pid = told.readline()
        except TimeoutError:
            pid = ""
        if not pid:
            return -1, 0
        ours.settimeout(None)
        with limit(int(pid)) as overdue:
            ended = told.readline()
        if not ended:  # who watched it has been killed
            with_signal(int(pid), signal.SIGKILL)
            return -1, 0
        ours.sendall(b"\n")
        status, cpu = (told.readline() or "-1 0").split()
    return None if overdue else int(status), float(cpu)


def sanitizer_report(text):
    found = SANITIZER.search(text)
    return text[found.start():found.start() + 3000] if found else None


class GoogleTest:
    def __init__(self, program, shards, only=None):
        self.name, self.program, self.shards, self.only = program.name, program, shards, only

    def parts(self):
        return [{"GTEST_TOTAL_SHARDS": str(self.shards), "GTEST_SHARD_INDEX": str(shard)} for shard in range(self.shards)]

    def run(self, part, arguments=None):
        if arguments is None:
            arguments = [f"--gtest_filter={self.only}"] if self.only else []
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")} | part
        start = time.time()
        with tempfile.TemporaryDirectory() as folder:
            report, log = pathlib.Path(folder) / "report.json", pathlib.Path(folder) / "log"
            with open(log, "wb") as output:
                status, cpu = wait([self.program, f"--gtest_output=json:{report}", "--gtest_color=no", *arguments], environment, output)
            text = log.read_text(errors="replace")
            try:
                data = json.loads(report.read_text(errors="replace"))
            except (OSError, ValueError):
                data = None
        outcome = self.read(data) if data else Outcome()
        running = re.findall(r"^\[ RUN      \] (\S+)", text, re.M)
        last = f"{self.name}: {running[-1]}" if running else self.name
        bad = sanitizer_report(text)
        if bad:
            outcome.failures.append(Failure(last, bad, True))
        elif status is None:
            outcome.failures.append(Failure(last, f"was running when {LIMIT_S} seconds were over", True))
        elif data is None:
            outcome.failures.append(Failure(last, f"was running when the program ended with status {status}\n{text[-1500:]}", True))
        elif status != 0 and not outcome.failures:
            outcome.failures.append(Failure(self.name, f"ended with status {status}\n{text[-1500:]}", True))
        if outcome.failures:
            shown = [block for block in re.split(r"(?=^\[ RUN      \])", text, flags=re.M) if "\n[  FAILED  ]" in block]
            print("".join(shown)[-12000:] or text[-6000:], flush=True)
        outcome.seconds, outcome.cpu = time.time() - start, cpu
        return outcome

    def read(self, data):
        outcome = Outcome()
        for suite in data["testsuites"]:
            for case in suite["testsuite"]:
                test = f"{self.name}: {suite['name']}.{case['name']}"
                outcome.slow.append((float(case.get("time", "0s").rstrip("s")), test))
                if case.get("failures"):
                    outcome.failures.append(Failure(test, case["failures"][0]["failure"], False))
                elif case.get("result") == "SKIPPED":
                    outcome.skipped += 1
                elif case.get("result") != "SUPPRESSED":
                    outcome.passed += 1
        return outcome

    def again(self, failure):
        """None where the test passes alone, else what is wrong."""
        outcome = self.run({}, [f"--gtest_filter={failure.test.split(': ', 1)[1]}"])
        return outcome.failures[0] if outcome.failures else None if outcome.passed == 1 and outcome.skipped == 0 else failure


class Pytest:
    """The test files of a folder, in `count` parts of about the same size. reports: whether the sanitizers of servers report.

    only: {file: parts}, these files alone, their tests dealt to so many parts. without: all but these files.
    seconds: {file: seconds} of the last run; files that take long, and those that it lacks, have a part each, before the others.
    first: those that have one where nothing is known of any.
    """

    def __init__(self, name, python, binary, folder, count=1, reports=False, only=None, without=(), first=(), seconds=None):
        self.name, self.python, self.binary, self.folder = name, python, binary, folder
        self.count, self.reports, self.only, self.without, self.first = count, reports, only or {}, without, first
        self.seconds = seconds or {}

    def parts(self):
        if self.only:
            return [[f"{self.folder}/{name}", f"--part={part}/{count}"] for name, count in self.only.items() for part in range(count)]
        if self.count == 1:
            return [[self.folder]]
        paths = {path.name: path for path in (ROOT / self.folder).glob("test_*.py") if path.name not in self.without}
        size = {name: self.seconds.get(name, LONG_S) if self.seconds else path.stat().st_size for name, path in paths.items()}
        by_size = sorted(paths, key=lambda name: (-size[name], name))
        first = [name for name in by_size if size[name] >= LONG_S] if self.seconds else list(self.first)
        parts = [(0, [])] * self.count
        for name in by_size:
            if name not in first:
                total, part = parts.pop()
                parts.append((total + size[name], [*part, name]))
                parts.sort(key=lambda part: -part[0])
        return [[f"{self.folder}/{name}" for name in sorted(part)] for part in [*([name] for name in first), *(part for _, part in parts)]
                if part]  # without a file pytest would take them all

    def run(self, tests):
        environment = {**os.environ, "PORTICO_BINARY": str(self.binary)}
        start = time.time()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "outcomes"
            path.touch()
            environment["PORTICO_OUTCOMES"] = str(path)
            if self.reports:
                for sanitizer in ("ASAN", "UBSAN", "LSAN", "TSAN"):
                    options = [environment.get(f"{sanitizer}_OPTIONS", ""), f"log_path={folder}/sanitizer"]
                    environment[f"{sanitizer}_OPTIONS"] = ":".join(filter(None, options))
            extra = ["-x"] if os.environ.get("PORTICO_FAIL_FAST") else []
            status, cpu = wait_pytest(self.python, ["-q", "-q", "-p", "outcomes_plugin", *extra, *tests], environment)
            outcome = self.read([json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line], status)
            for report in sorted(pathlib.Path(folder).glob("sanitizer.*")):
                bad = sanitizer_report(report.read_text(errors="replace"))
                if bad:
                    print(bad, flush=True)
                    outcome.failures.append(Failure(f"{self.name}: a program that a test started", bad, True))
        if any(SANITIZER.search(failure.message) for failure in outcome.failures):
            for failure in outcome.failures:  # one may be why another failed
                failure.final = True
        outcome.seconds, outcome.cpu = time.time() - start, cpu
        return outcome

    def read(self, events, status):
        outcome, skipped, failed, seconds, cpu, running, ended = Outcome(), set(), set(), {}, {}, None, False
        for event in events:
            if event["event"] == "start":
                running = event["test"]
            elif event["event"] == "end":
                ended = True
            else:
                test, when = event["test"], event["when"]
                seconds[test] = seconds.get(test, 0) + event["seconds"]
                cpu[test] = cpu.get(test, 0) + event["cpu"]
                if event["outcome"] == "skipped":
                    skipped.add(test)
                if event["outcome"] == "failed":
                    if test not in failed:
                        final = when not in ("setup", "call") or bool(CRASH.search(event["message"]))
                        outcome.failures.append(Failure(test, event["message"], final))
                    elif when == "teardown":
                        next(f for f in outcome.failures if f.test == test).final = True
                    failed.add(test)
        tests = {event["test"] for event in events if event["event"] == "report" and event["when"] != "collect"}
        outcome.passed, outcome.skipped = len(tests - skipped - failed), len(skipped - failed)
        outcome.slow = [(time, test) for test, time in seconds.items()]
        outcome.costly = [(time, test) for test, time in cpu.items()]
        if status is None:
            outcome.failures.append(Failure(running or self.name, f"was running when {LIMIT_S} seconds were over", True))
        elif not ended:
            outcome.failures.append(Failure(running or self.name, f"was running when pytest ended with status {status}", True))
        elif status not in (0, 1, 5) and not outcome.failures:
            outcome.failures.append(Failure(self.name, f"pytest ended with status {status}", True))
        return outcome

    def again(self, failure):
        outcome = self.run([failure.test])
        return outcome.failures[0] if outcome.failures else None if outcome.passed == 1 and outcome.skipped == 0 else failure


def run_again(suite, outcome):
    """Runs what failed in `suite` once more, one test after the other; changes `outcome`."""
    if len(outcome.failures) > MAX_AGAIN or any(failure.final for failure in outcome.failures):
        return
    first, outcome.failures = outcome.failures, []
    for failure in first:
        print(f"once more, alone: {failure.test}", flush=True)
        still = suite.again(failure)
        if still:
            outcome.failures.append(dataclasses.replace(still, test=failure.test))
        else:
            outcome.flaky.append(failure.test)
            outcome.passed += 1
