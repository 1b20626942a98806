"""The seed of the generated texts and templates: a new one each run, so that every run searches where none has been.
It is printed at the begin and the end of a run and with each failure; PORTICO_SEED=n repeats what it found."""
import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
SEED = int(os.environ.get("PORTICO_SEED") or random.SystemRandom().randrange(1 << 32))
REPEAT = f"crosscheck: PORTICO_SEED={SEED} repeats this run"


def pytest_report_header():
    return REPEAT


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(REPEAT)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    report = (yield).get_result()
    if report.failed:
        report.sections.append(("seed", REPEAT))


@pytest.fixture
def seeded(request):
    """A generator of its own for each test, so that one test can be repeated alone."""
    return random.Random(f"{SEED} {request.node.name}")
