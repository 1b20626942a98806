"""Profiles, for tests: how they are asked for, and what is in their files."""
import json
import pathlib
import subprocess

import pytest
import requests

from conftest import BINARY, WAIT_SECONDS, wait_until


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder below which servers of this test write profiles."""
    monkeypatch.setenv("SGLANG_TORCH_PROFILER_DIR", str(tmp_path / "profiles"))
    return tmp_path / "profiles"


def post(server, path, **body):
    return requests.post(server.url + path, json=body, timeout=WAIT_SECONDS)


def events_of(directory):
    return [json.loads(line) for file in sorted(pathlib.Path(directory).glob("events_*.jsonl"))
            for line in file.read_text().splitlines()]


def all_ended(directory):
    facts = [json.loads(file.read_text()) for file in pathlib.Path(directory).glob("run_*.json")]
    return facts and all(fact["ended"] for fact in facts)


def recorded(server, run, work):
    """The events of `work()`."""
    started = post(server, "/start_request_profile", run_id=run).json()
    work()
    assert post(server, "/stop_request_profile", run_id=run).json() == {"run_id": run}
    wait_until(lambda: all_ended(started["event_dir"]), "the files are not complete")
    return events_of(started["event_dir"])


def profile(*words):
    return subprocess.run([str(BINARY), "profile", *map(str, words)], capture_output=True, text=True, timeout=WAIT_SECONDS)


def report(*words):
    done = profile(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(events, request):
    return [(event["stage"], event["event_name"]) for event in events if event["request_id"] == request]
