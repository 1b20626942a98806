"""portico.mock does what a broken stage does: its request ends, is counted, and harms no other."""
import concurrent.futures
import os
import re
import signal

import pytest
import requests

from conftest import ROOT, wait_until
from omni_stages import ENCODE, health, pipeline, python, say, steps, write  # noqa: F401 (pipeline is a fixture)
from test_omni import omni_command

WHOLE = [0, 327, 655, 983, 1310]


def mock(fault, more="process: p1, replay: false,"):
    return f"name: talk, {more} factory_path: portico.mock, factory: {{text: false, {fault}}}, stream_to: [encode]"


def ended(answer):
    """Whether an answer is an error, or was cut."""
    return answer is None or answer.status_code in (500, 503, 504)


def voice_of(server):
    """The pid of stages_for_test.Hold, which is the name of its voice."""
    return int(re.search(r'"pid(\d+)"', requests.get(server.url + "/v1/audio/voices", timeout=60).text)[1])


def speaks_again(server):
    """Waits until the stage is back. On a busy machine its process may be ended once more for its silence, with what it works on."""
    def speaks():
        answer = ask(server, "hello")
        if ended(answer):
            return False
        assert steps(answer) == WHOLE
        return True
    wait_until(speaks, "the stage is not back")


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
    if fault != "twice":
        assert ended(answer), answer.status_code
    elif after == 0:
        assert answer.status_code == 500 and "no sound" in answer.text
    else:  # the end that comes too early is one
        assert steps(answer) == WHOLE[:after]
    if counter:
        server.wait_for(counter, 1)
        # From then on it is not healthy before the new process is ready.
        server.wait_for("portico_stage_process_restarts_total", 1)
    wait_until(lambda: health(server).text == "ok\n", "the stage is not back")
    assert steps(say(server, "hello")) == WHOLE
    server.wait_for("portico_pipeline_requests_running", 0)


@pytest.mark.parametrize("fault", ["never", "hang"])
def test_a_stage_that_never_answers_ends_at_its_stall_timeout(pipeline, fault):
    server = pipeline(mock(f"fault: {fault}, fault_after: 1, fault_on: odd", "process: p1, stall_timeout_s: 8, replay: false,"), ENCODE)
    assert ended(ask(server, "odd"))
    speaks_again(server)
    server.wait_for("portico_pipeline_requests_running", 0)


def test_a_request_that_has_shown_its_client_nothing_begins_anew_in_all_stages(pipeline, tmp_path):
    """It ended with 503 where the stage that died had passed something on. That is in no part of the new answer."""
    marker = tmp_path / "go"
    server = pipeline(python("voice", "Hold", f"factory: {{marker: '{marker}'}}, stream_to: [count]"), python("count", "count"), ENCODE)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        begun = [pool.submit(say, server, "first hold") for _ in range(4)]
        server.wait_for("portico_stage_parts_total", 4, stage="count")
        marker.touch()  # for those that begin from now on
        os.kill(voice_of(server), signal.SIGKILL)
        assert [steps(answer.result(60)) for answer in begun] == [[2]] * 4
    assert server.metric("portico_pipeline_replays_total") == 4
    server.wait_for("portico_pipeline_requests_running", 0)


def test_a_request_does_not_begin_anew_where_a_stage_that_has_begun_forbids_it(pipeline):
    server = pipeline(python("voice", "Hold", "stream_to: [count]"), python("count", "count", "replay: false, stream_to: [encode]"), ENCODE)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        begun = pool.submit(say, server, "first hold")
        server.wait_for("portico_stage_parts_total", 1, stage="count")
        os.kill(voice_of(server), signal.SIGKILL)
        answer = begun.result(60)
    assert answer.status_code == 503 and "stage `voice` has ended" in answer.json()["error"]["message"]
    assert server.metric("portico_pipeline_replays_total") == 0


def test_a_request_that_ends_each_process_is_given_up_after_the_second(pipeline):
    server = pipeline(python("voice", "Hold", "stream_to: [count]"), python("count", "count"), ENCODE)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        begun = pool.submit(say, server, "first hold")
        for process in (1, 2):
            server.wait_for("portico_stage_parts_total", process, stage="count")
            os.kill(voice_of(server), signal.SIGKILL)
        answer = begun.result(60)
    assert answer.status_code == 503 and "stage `voice` has ended" in answer.json()["error"]["message"]
    server.wait_for("portico_stage_process_restarts_total", 2)
    assert server.metric("portico_pipeline_replays_total") == 1
    wait_until(lambda: say(server, "hello").status_code == 200, "the stage is not back")


def test_a_request_that_began_anew_gets_no_third_process_where_it_ends_the_second_before_any_output(pipeline, tmp_path):
    """Its new run had shown nothing, and so went to another process, as if it were the request's first."""
    log = tmp_path / "log"
    server = pipeline(python("voice", "HoldTwice", f"factory: {{log: '{log}'}}, stream_to: [count]"), python("count", "count"), ENCODE)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        begun = pool.submit(say, server, "hello")
        server.wait_for("portico_stage_parts_total", 1, stage="count")
        os.kill(voice_of(server), signal.SIGKILL)
        wait_until(lambda: log.read_text().count("begun") == 2, "the request does not begin anew")
        os.kill(voice_of(server), signal.SIGKILL)
        answer = begun.result(60)
    assert answer.status_code == 503 and "stage `voice` has ended" in answer.json()["error"]["message"]
    assert log.read_text().count("begun") == 2
    assert server.metric("portico_pipeline_replays_total") == 1 and server.metric("portico_stage_replays_total") == 0


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
