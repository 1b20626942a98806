"""The seed of the generated texts and templates: the same each run, so that a change is judged by what it changed.
PORTICO_SEED=new searches where no run has been; PORTICO_SEED=n repeats what it found."""
import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
WANTED = os.environ.get("PORTICO_SEED") or "1"
SEED = random.SystemRandom().randrange(1 << 32) if WANTED == "new" else int(WANTED)


def pytest_report_header():
    return f"crosscheck: PORTICO_SEED={SEED} repeats this run"


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"crosscheck: PORTICO_SEED={SEED} repeats this run")


@pytest.fixture
def seeded(request):
    """A generator of its own for each test, so that one test can be repeated alone."""
    return random.Random(f"{SEED} {request.node.name}")
