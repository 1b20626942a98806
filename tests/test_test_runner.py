"""What scripts/suites.py makes of tests that fail: once, always, with a crash, with a sanitizer's report, and of suites without an end.
And which tests run when: parts of files, more of them while the processors are idle, and fewer tests with a sanitizer."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import places  # noqa: E402
import sanitized  # noqa: E402
import suites  # noqa: E402

# As a GoogleTest program: `first` and `alone` are Python for what its test does in a run of all, and alone.
PROGRAM = """#!{python}
import json, os, pathlib, signal, sys, time
arguments = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
alone = "--gtest_filter" in arguments
assert not (alone and "GTEST_SHARD_INDEX" in os.environ)
print("[ RUN      ] Kettle.Boils", flush=True)
failures = []
{first}
if alone:
    failures = []
    {alone}
case = {{"name": "Boils", "time": "0.5s", "result": "COMPLETED"}}
if failures:
    case["failures"] = [{{"failure": failures[0]}}]
    print("[  FAILED  ] Kettle.Boils")
pathlib.Path(arguments["--gtest_output"].removeprefix("json:")).write_text(
    json.dumps({{"testsuites": [{{"name": "Kettle", "testsuite": [case]}}]}}))
sys.exit(bool(failures))
"""
FAILS = 'failures = ["kettle_test.cc:7: cold"]'


def outcome_of(folder, first, alone="pass", limit=None, monkeypatch=None):
    program = folder / "kettle_test"
    program.write_text(PROGRAM.format(python=sys.executable, first=first, alone=alone))
    program.chmod(0o755)
    if limit:
        monkeypatch.setattr(suites, "LIMIT_S", limit)
    suite, outcome = suites.GoogleTest(program, 1), suites.Outcome()
    for part in suite.parts():
        outcome.add(suite.run(part))
    suites.run_again(suite, outcome)
    return outcome


def test_a_test_that_fails_once_and_passes_alone_is_flaky(tmp_path):
    outcome = outcome_of(tmp_path, FAILS)
    assert (outcome.failures, outcome.flaky, outcome.passed) == ([], ["kettle_test: Kettle.Boils"], 1)


def test_a_test_that_fails_again_is_a_failure_with_its_message(tmp_path):
    outcome = outcome_of(tmp_path, FAILS, FAILS)
    assert [(f.test, f.message) for f in outcome.failures] == [("kettle_test: Kettle.Boils", "kettle_test.cc:7: cold")]
    assert outcome.flaky == []


@pytest.mark.parametrize("first", ["os.kill(os.getpid(), signal.SIGSEGV)", 'print("WARNING: ThreadSanitizer: data race")',
                                   'print("x.cc:1:2: runtime error: signed integer overflow")', "time.sleep(60)"])
def test_crashes_reports_and_endless_suites_are_never_run_again(tmp_path, monkeypatch, first):
    outcome = outcome_of(tmp_path, f"if not alone: {first}", limit=3, monkeypatch=monkeypatch)
    [failure] = outcome.failures
    assert failure.test == "kettle_test: Kettle.Boils" and failure.final and outcome.flaky == []


def test_a_program_that_only_ends_badly_has_failed(tmp_path):
    outcome = outcome_of(tmp_path, 'import atexit; atexit.register(lambda: os._exit(23))')
    assert "ended with status 23" in outcome.failures[0].message


def pytest_outcome(folder, text, monkeypatch):
    (folder / "test_kettle.py").write_text(text)
    monkeypatch.setattr(suites, "ROOT", folder)
    suite, outcome = suites.Pytest("kettle", sys.executable, "portico", ".", 1, True), suites.Outcome()
    for part in suite.parts():
        outcome.add(suite.run(part))
    suites.run_again(suite, outcome)
    return outcome


ONCE = "import os, pathlib, pytest, subprocess, sys\nfirst = not os.path.exists('seen')\nopen('seen', 'w').close()\n"


def test_client_tests_are_run_again_too(tmp_path, monkeypatch):
    outcome = pytest_outcome(tmp_path, ONCE + "def test_a():\n  assert not first\ndef test_b():\n  pass\n", monkeypatch)
    assert (outcome.failures, len(outcome.flaky), outcome.passed) == ([], 1, 2)


@pytest.mark.parametrize("body", [
    "assert not first, 'the server ended with -11'",
    # A server that a test has started writes its report where log_path says.
    "path = dict(o.split('=', 1) for o in os.environ['TSAN_OPTIONS'].split(':'))['log_path']\n"
    "  if first: pathlib.Path(path + '.7').write_text('WARNING: ThreadSanitizer: data race')"])
def test_what_ends_a_server_or_a_report_of_it_is_never_run_again(tmp_path, monkeypatch, body):
    outcome = pytest_outcome(tmp_path, ONCE + f"def test_a():\n  {body}\n", monkeypatch)
    assert len(outcome.failures) == 1 and outcome.flaky == []


def test_errors_at_teardown_and_more_than_five_failures_are_never_run_again(tmp_path, monkeypatch):
    text = ONCE + "@pytest.fixture\ndef kettle():\n  yield\n  assert not first\ndef test_a(kettle):\n  pass\n"
    outcome = pytest_outcome(tmp_path, text, monkeypatch)
    assert len(outcome.failures) == 1 and outcome.flaky == []
    (tmp_path / "seen").unlink()
    text = ONCE + "@pytest.mark.parametrize('i', range(6))\ndef test_a(i):\n  assert not first\n"
    outcome = pytest_outcome(tmp_path, text, monkeypatch)
    assert len(outcome.failures) == 6 and outcome.flaky == []


def test_an_endless_suite_of_pytest_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(suites, "LIMIT_S", 3)
    [failure] = pytest_outcome(tmp_path, "import time\ndef test_a():\n  time.sleep(600)\n", monkeypatch).failures
    assert "seconds were over" in failure.message and failure.final


def test_a_test_that_ends_pytest_is_named(tmp_path, monkeypatch):
    outcome = pytest_outcome(tmp_path, "import os\ndef test_a():\n  os._exit(3)\n", monkeypatch)
    assert outcome.failures[0].test.endswith("::test_a") and outcome.failures[0].final


def test_the_tests_of_a_file_are_dealt_to_parts_and_each_runs_once(tmp_path, monkeypatch):
    text = "import pytest\n@pytest.mark.parametrize('i', range(5))\ndef test_a(i):\n  sum(range(3_000_000))\n"
    (tmp_path / "test_kettle.py").write_text(text)
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    suite = suites.Pytest("kettle", sys.executable, "portico", ".", only={"test_kettle.py": 2})
    outcomes = [suite.run(part) for part in suite.parts()]
    assert [outcome.passed for outcome in outcomes] == [3, 2]
    names = [test for outcome in outcomes for _, test in outcome.slow]
    assert len(names) == len(set(names)) == 5
    assert all(0 < sum(seconds for seconds, _ in outcome.costly) <= outcome.cpu for outcome in outcomes)


def test_files_that_take_long_have_parts_of_their_own_which_are_the_first(tmp_path, monkeypatch):
    for name in "abcde":
        (tmp_path / f"test_{name}.py").write_text("")
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    parts = suites.Pytest("kettle", sys.executable, "portico", ".", 2, first=["test_d.py", "test_b.py"], without=["test_a.py"]).parts()
    assert parts[:2] == [["./test_d.py"], ["./test_b.py"]] and sorted(sum(parts[2:], [])) == ["./test_c.py", "./test_e.py"]


def test_files_that_took_long_have_parts_of_their_own_and_the_others_parts_of_the_same_length(tmp_path, monkeypatch):
    for name in "abcdefg":
        (tmp_path / f"test_{name}.py").write_text("")
    monkeypatch.setattr(suites, "ROOT", tmp_path)
    seconds = {f"test_{name}.py": took for name, took in {"a": 1, "b": 40, "c": 3, "d": 5, "e": 1.5, "f": 99}.items()}
    parts = suites.Pytest("kettle", sys.executable, "portico", ".", 2, seconds=seconds, first=["test_a.py"]).parts()
    assert parts[:3] == [["./test_f.py"], ["./test_b.py"], ["./test_g.py"]]  # nobody knows how long g takes
    assert parts[3:] == [["./test_a.py", "./test_c.py", "./test_e.py"], ["./test_d.py"]]
    # A part without a file would be the whole tree.
    assert suites.Pytest("kettle", sys.executable, "portico", ".", 9, seconds={"test_a.py": 1}).parts()[-1] == ["./test_a.py"]


def test_more_parts_start_while_the_processors_are_idle_and_no_others():
    ticks, idle = [0, 0], True

    def read():
        ticks[:] = ticks[0] + 100 * idle, ticks[1] + 100
        return tuple(ticks)

    room = places.Places(1, 3, read, window=0)
    assert [room.enter_now() for _ in range(4)] == [True, True, True, False]
    room.leave()
    idle = False
    assert not room.enter_now()
    room.leave()
    room.leave()
    assert [room.enter_now() for _ in range(2)] == [True, False]
    room.more()
    assert [room.enter_now() for _ in range(2)] == [True, False]


def test_a_sanitizer_leaves_out_what_is_named_and_the_extended_run_nothing(monkeypatch):
    def reason(file, *test):
        return sanitized.left_out(f"test_{file}.py", *test)

    for name in ("PORTICO_SANITIZED", "PORTICO_CI"):
        monkeypatch.delenv(name, raising=False)
    assert reason("tools") is None
    monkeypatch.setenv("PORTICO_SANITIZED", "asan")
    assert reason("tools") is None and reason("omni") is None
    assert "PocketSphinx" in reason("omni", "test_what_is_said_is_heard_again_in_every_format")
    assert sanitized.files_left_out() & {"test_proto.py", "test_tools.py", "test_omni.py"} == {"test_proto.py"}
    storm = "test_a_process_in_a_storm_harms_no_request_that_does_not_need_it"
    assert reason("omni_chaos", storm, f"{storm}[think]") and reason("omni_chaos", storm, f"{storm}[say]") is None
    monkeypatch.setenv("PORTICO_SANITIZED", "tsan")
    assert reason("tools") == sanitized.ONE_AFTER_THE_OTHER and reason("omni_sockets") is None
    monkeypatch.setenv("PORTICO_CI", "extended")
    assert reason("tools") is None and not sanitized.files_left_out()


def test_what_a_sanitizer_leaves_out_is_there():
    for reasons in (sanitized.EITHER, sanitized.TSAN):
        for name in " ".join(reasons.values()).split():
            file, _, test = name.partition("::")
            test = test.partition("[")[0]
            assert f"def {test}(" in (ROOT / f"tests/test_{file}.py").read_text() if test else (ROOT / f"tests/test_{file}.py").exists(), name
