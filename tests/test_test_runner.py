"""What scripts/suites.py makes of tests that fail: once, always, with a crash, with a sanitizer's report, and of suites without an end."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
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


def test_a_test_that_ends_pytest_is_named(tmp_path, monkeypatch):
    outcome = pytest_outcome(tmp_path, "import os\ndef test_a():\n  os._exit(3)\n", monkeypatch)
    assert outcome.failures[0].test.endswith("::test_a") and outcome.failures[0].final
