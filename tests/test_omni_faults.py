"""portico.mock does what a broken stage does: its request ends, is counted, and harms no other."""
import pytest
import requests

from conftest import ROOT, wait_until
from omni_stages import ENCODE, health, pipeline, say, steps, write  # noqa: F401 (pipeline is a fixture)
from test_omni import omni_command

WHOLE = [0, 327, 655, 983, 1310]


def mock(fault, more="process: p1, replay: false,"):
    return f"name: talk, {more} factory_path: portico.mock, factory: {{text: false, {fault}}}, stream_to: [encode]"


def ended(answer):
    """Whether an answer is an error, or was cut."""
    return answer is None or answer.status_code in (500, 503, 504)


def ask(server, text):
    try:
        return say(server, text)
    except requests.exceptions.ChunkedEncodingError:
        return None


@pytest.mark.parametrize("after", [0, 2, 9])
@pytest.mark.parametrize("fault,counter", [
    ("fail", None), ("die", "portico_stage_process_restarts_total"), ("garbage", "portico_stage_garbage_total"),
    ("twice", "portico_stage_garbage_total"), ("stranger", "portico_stage_garbage_total")])
def test_a_fault_ends_its_own_request_and_the_stage_is_back(pipeline, fault, counter, after):
    server = pipeline(mock(f"fault: {fault}, fault_after: {after}, fault_on: odd"), ENCODE)
    assert steps(say(server, "hello")) == WHOLE
    answer = ask(server, "odd")
    # The end that comes too early is one; and a mock that has sent everything may be believed before it is found out.
    assert ended(answer) or (fault == "twice" or after == 9), answer.status_code
    if counter:
        server.wait_for(counter, 1)
    wait_until(lambda: health(server).text == "ok\n", "the stage is not back")
    assert steps(say(server, "hello")) == WHOLE
    server.wait_for("portico_pipeline_requests_running", 0)


@pytest.mark.parametrize("fault", ["never", "hang"])
def test_a_stage_that_never_answers_ends_at_its_stall_timeout(pipeline, fault):
    server = pipeline(mock(f"fault: {fault}, fault_after: 1, fault_on: odd", "process: p1, stall_timeout_s: 4, replay: false,"), ENCODE)
    assert ended(ask(server, "odd"))
    wait_until(lambda: health(server).text == "ok\n", "the stage is not back")
    assert steps(say(server, "hello")) == WHOLE
    server.wait_for("portico_pipeline_requests_running", 0)


def test_faults_of_a_process_need_one(tmp_path):
    for fault, why in (("die", "needs a stage with a `process`"), ("hang", "needs a stage"), ("odd", "must be one of none, fail, never")):
        refused = omni_command("check", str(write(tmp_path / "p.yaml", mock(f"fault: {fault}", ""), ENCODE)))
        assert refused.returncode == 1 and why in refused.stderr, refused.stderr
    accepted = omni_command("check", str(write(tmp_path / "p.yaml", mock("fault: never", ""), ENCODE)))
    assert accepted.returncode == 0, accepted.stderr


def test_keys_that_are_not_done_are_refused_with_the_reasons_that_the_manual_gives(tmp_path):
    manual = (ROOT / "docs/omni.md").read_text()
    table = manual.split("are rejected, too, with the reason:\n\n| key | why |\n|---|---|\n")[1].split("\n\n")[0]
    keys = 0
    for row in table.splitlines():
        names, why = (cell.strip() for cell in row.strip("|").split("|"))
        for key in names.replace("`", "").split(", "):
            keys += 1
            refused = omni_command("check", str(write(tmp_path / "p.yaml", f"name: a, factory_path: portico.pass, terminal: true, {key}: 1")))
            assert refused.returncode == 1 and f"`{key}` is not supported: {why}" in refused.stderr, (key, refused.stderr)
    assert keys == 23
