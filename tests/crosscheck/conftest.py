"""The seed of the generated texts and templates: new each run, printed; PORTICO_SEED=n repeats one."""
import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
SEED = int(os.environ.get("PORTICO_SEED") or random.SystemRandom().randrange(1 << 32))


def pytest_report_header():
    return f"crosscheck: PORTICO_SEED={SEED} repeats this run"


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"crosscheck: PORTICO_SEED={SEED} repeats this run")


@pytest.fixture
def seeded(request):
    """A generator of its own for each test, so that one test can be repeated alone."""
    return random.Random(f"{SEED} {request.node.name}")
