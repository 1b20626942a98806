"""A pytest plugin for scripts/suites.py: writes what happens to each test as it happens, one JSON object a line, to the file that
PORTICO_OUTCOMES names. A run that is killed leaves the name of the test that was running. `cpu`: seconds of CPU since the line before,
with those of programs that ended meanwhile. --part=I/N: of the tests, the I-th and each N-th after it."""
import json
import os


class Outcomes:
    def __init__(self, path):
        self.file = open(path, "a", buffering=1, encoding="utf-8")
        self.used = 0

    def write(self, **fields):
        self.file.write(json.dumps(fields) + "\n")

    def pytest_runtest_logstart(self, nodeid, location):
        self.write(event="start", test=nodeid)

    def pytest_runtest_logreport(self, report):
        message = ""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = f"{crash.path}:{crash.lineno}: {crash.message}" if crash else str(report.longrepr)
        before, self.used = self.used, sum(os.times()[:4])
        self.write(event="report", test=report.nodeid, when=report.when, outcome=report.outcome, seconds=report.duration,
                   cpu=self.used - before, message=message[:2000])

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(event="report", test=report.nodeid, when="collect", outcome="failed", seconds=0, cpu=0,
                       message=str(report.longrepr)[-2000:])

    def pytest_sessionfinish(self, session, exitstatus):
        self.write(event="end", status=int(exitstatus))


def pytest_addoption(parser):
    parser.addoption("--part", default="0/1")


def pytest_collection_modifyitems(config, items):
    part, count = map(int, config.getoption("--part").split("/"))
    items[:] = items[part::count]


def pytest_configure(config):
    config.pluginmanager.register(Outcomes(os.environ["PORTICO_OUTCOMES"]), "portico-outcomes")
