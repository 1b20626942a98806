"""Profiles: the four routes, what the events say, `portico profile`, and that nothing is lost or held up."""
import collections
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import threading

import pytest
import requests

from conftest import BINARY, SANITIZED, WAIT_SECONDS, Server, wait_until
from gateway_fleet import Process
from omni_stages import ENCODE, children, python, say, write
from profiles import all_ended, events_of, folder, names, post, profile, recorded, report  # noqa: F401

RUNS = 1000 if os.environ.get("PORTICO_CI") == "extended" else 15 if SANITIZED else 60
SPEECH = ("name: talk, factory_path: portico.mock, factory: {chunks: 5}, process: p1, stream_to: [pass]",
          "name: pass, factory_path: portico.pass, stream_to: [encode]", ENCODE)


@pytest.fixture
def model(start, folder):
    return start("--engine", "mock", "--mock-itl-ms", "1")


def test_a_chat_leaves_its_way_through_the_server(model, folder):
    def work():
        answer = requests.post(model.url + "/v1/chat/completions", headers={"x-request-id": "mine"}, timeout=60, json={
            "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, "stream": True})
        assert "[DONE]" in answer.text

    events = recorded(model, "one", work)
    assert {event["request_id"] for event in events} == {"mine"}
    seen = names(events, "mine")
    order = [("frontend", "socket_received"), ("frontend", "render_start"), ("frontend", "tokenize_end"),
             ("frontend", "stage_hop_sent"), ("engine", "scheduler_queue_enter"), ("engine", "scheduler_prefill_start"),
             ("engine", "scheduler_first_emit"), ("frontend", "detokenize_start"), ("frontend", "terminal_response"),
             ("frontend", "write_end")]
    by_time = [(event["stage"], event["event_name"]) for event in sorted(events, key=lambda event: event["timestamp_ns"])]
    assert all(one in seen for one in order), set(order) - set(seen)
    assert [one for one in by_time if one in order] == order
    line = next(event for event in events if event["event_name"] == "stage_hop_sent")
    assert set(line) == {"request_id", "stage", "event_name", "timestamp_ns", "run_id", "pid", "metadata"}
    assert line["run_id"] == "one" and line["pid"] == model.process.pid and line["metadata"]["to_stage"] == "engine"
    assert (folder / "one/events").is_dir()
    steps = [json.loads(line) for file in (folder / "one/events").glob("steps_*") for line in file.read_text().splitlines()]
    assert {step["event_name"] for step in steps} == {"step", "deliver"}


def test_a_request_is_called_by_its_rid_and_without_one_by_a_name_of_ours(model):
    def work():
        assert post(model, "/generate", rid="given", text="a", sampling_params={"max_new_tokens": 1}).status_code == 200
        assert post(model, "/generate", text="a", sampling_params={"max_new_tokens": 1}).status_code == 200

    events = recorded(model, "named", work)
    requests_seen = {event["request_id"] for event in events}
    assert "given" in requests_seen and len(requests_seen) == 2
    assert ("frontend", "socket_received") in names(events, "given")


def test_long_prompts_that_are_planned_elsewhere_stay_one_request(model):
    def work():
        answer = model.chat("word " * 14000, max_tokens=1, rid="long")
        assert answer.status_code == 200, answer.text

    events = recorded(model, "long", work)
    assert {event["request_id"] for event in events} == {"long"}
    assert {("frontend", "tokenize_start"), ("frontend", "socket_received")} <= set(names(events, "long"))


def test_the_routes_answer_as_sglang_omni_does(model, folder):
    started = post(model, "/start_profile").json()
    assert set(started) == {"run_id", "trace_path_template", "event_dir", "enable_torch"}
    assert started["run_id"].startswith("run_2") and started["enable_torch"] is False
    assert started["event_dir"] == str(folder / started["run_id"] / "events")
    assert started["trace_path_template"] == str(folder / started["run_id"] / "trace")
    assert post(model, "/stop_request_profile", run_id="another").json() == {"run_id": None}
    assert post(model, "/stop_profile").json() == {"run_id": started["run_id"]}
    assert post(model, "/start_request_profile", run_id="x", event_dir="mine").json() == {
        "run_id": "x", "event_dir": str(folder / "mine")}
    assert model.metric("portico_profile_running") == 1
    assert post(model, "/start_request_profile", run_id="y").json()["run_id"] == "y"
    assert post(model, "/stop_request_profile").json() == {"run_id": "y"}
    assert post(model, "/stop_request_profile").json() == {"run_id": None}
    assert model.metric("portico_profile_runs_total") == 3


WRONG = [
    ({"event_dir": "/tmp/elsewhere"}, "event_dir"), ({"event_dir": "../out"}, "event_dir"), ({"event_dir": 5}, "event_dir"),
    ({"event_dir": "a/../../../out"}, "event_dir"), ({"event_dir": "."}, "event_dir"),
    ({"trace_path_template": "/etc/x"}, "trace_path_template"), ({"output_dir": "/etc"}, "output_dir"),
    ({"run_id": "../x"}, "run_id"), ({"run_id": ""}, "run_id"), ({"run_id": "a" * 129}, "run_id"), ({"run_id": ".x"}, "run_id"),
    ({"weather": 1}, "weather"), ({"num_steps": "many"}, "num_steps"), ({"activities": "CPU"}, "activities"),
    ({"profile_stages": ["decode"]}, "profile_stages"),
    ({"profile_by_stage": 1}, "profile_by_stage"), ({"profile_prefix": "../x"}, "profile_prefix"), ({"merge_profiles": "yes"}, "merge_profiles")]


def test_what_a_body_may_not_say(model, folder):
    for body, field in WRONG:
        answer = post(model, "/start_profile", **body)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == field, (body, answer.text)
    assert model.metric("portico_profile_running") == 0


def test_a_link_out_of_the_folder_is_no_way_out(model, folder, tmp_path):
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    assert post(model, "/start_request_profile", event_dir="link/events").status_code == 400


def test_the_command_line_names_the_folder_and_the_bound(start, folder, tmp_path):
    server = start("--engine", "mock", "--profile-dir", tmp_path / "mine", "--profile-max-bytes", 1 << 20)
    started = post(server, "/start_request_profile", run_id="a").json()
    assert started["event_dir"] == str(tmp_path / "mine" / "a" / "events") and not folder.exists()
    assert post(server, "/start_request_profile", run_id="b", event_dir=str(folder / "b")).json()["error"]["param"] == "event_dir"
    assert post(server, "/stop_request_profile").status_code == 200
    (tmp_path / "file").write_text("")
    for command in (("serve", "--engine", "mock"), ("route", "--prometheus-port", "0", "--worker-urls", "http://127.0.0.1:9")):
        done = subprocess.run([str(BINARY), *command, "--port", "0", "--profile-dir", str(tmp_path / "file")], capture_output=True, text=True, timeout=WAIT_SECONDS)
        assert done.returncode != 0 and "--profile-dir" in done.stderr + done.stdout


def test_sglangs_fields_alone_are_the_engines(model):
    answer = post(model, "/start_profile", num_steps=5, activities=["CPU"])
    assert answer.status_code == 400 and "no profiler" in answer.json()["error"]["message"]
    assert model.metric("portico_profile_running") == 0
    both = post(model, "/start_profile", run_id="r", num_steps=5)
    assert both.status_code == 400
    wait_until(lambda: model.metric("portico_profile_running") == 0, "the recorder goes on without the engine")


def test_a_refused_start_leaves_the_current_run_alone(model):
    """The run had ended, and the refused one recorded."""
    assert post(model, "/start_profile", run_id="first").status_code == 200
    refused = post(model, "/start_profile", run_id="second", num_steps=3)
    assert refused.status_code == 400 and "no profiler" in refused.json()["error"]["message"]
    assert model.metric("portico_profile_runs_total") == 1
    assert post(model, "/stop_profile").json() == {"run_id": "first"}
    # Nothing runs: that was a 400 of the engine.
    assert post(model, "/stop_profile").json() == {"run_id": None}


def test_profiles_are_the_operators(start, folder):
    server = start("--engine", "mock", "--api-key", "k", "--admin-api-key", "a")
    for path in ["/start_profile", "/stop_profile", "/start_request_profile", "/stop_request_profile"]:
        for key in ["", "k"]:
            answer = requests.post(server.url + path, json={}, headers={"authorization": f"Bearer {key}"}, timeout=60)
            assert answer.status_code == 401, path


def test_starts_and_stops_under_load_lose_nothing(model, folder):
    """Starting the profiler hung a busy stage of sglang-omni (its issue 1779)."""
    over = threading.Event()
    fine = []

    def client():
        while not over.is_set():
            answer = model.chat("hello", max_tokens=3)
            fine.append(answer.status_code == 200)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        clients = [pool.submit(client) for _ in range(3)]
        try:
            for i in range(RUNS):
                assert post(model, "/start_request_profile", run_id=f"r{i}").status_code == 200
                assert post(model, "/stop_request_profile", run_id=f"r{i}").json() == {"run_id": f"r{i}"}
        finally:
            over.set()
        for one in clients:
            one.result()
    assert fine and all(fine)
    assert model.metric("portico_profile_dropped_total") == 0 and model.metric("portico_profile_cut_total") == 0
    facts = [json.loads(file.read_text()) for file in folder.glob("*/events/run_*.json")]
    assert all(fact["ended"] for fact in facts)
    lines = sum(len(file.read_text().splitlines()) for file in folder.glob("*/events/*.jsonl"))
    assert lines == sum(fact["written"] for fact in facts) == model.metric("portico_profile_events_total")


def test_runs_that_follow_each_other_under_load_have_every_event(start, folder, tmp_path):
    """What came while the files of the next run were made was in neither; also in stages with a process, and in those of Python."""
    stages = ("name: talk, factory_path: portico.mock, factory: {chunks: 5}, process: p1, stream_to: [same]", python("same", "same"), ENCODE)
    server = start("--pipeline", str(write(tmp_path / "p.yaml", *stages)), "--engine", "mock")
    kinds = {"speech": lambda: say(server, "hello"), "chat": lambda: server.chat("hello", max_tokens=3)}
    # The chunks of a chat are as many as the engine's steps happen to be.
    exact = {"speech": lambda name: True, "chat": lambda name: "chunk" not in name and "detokenize" not in name}

    def counted(events):
        return collections.Counter((event["stage"], event["event_name"]) for event in events)
    wanted = {kind: counted(recorded(server, kind, ask)) for kind, ask in kinds.items()}
    over, answers = threading.Event(), collections.Counter()
    lock = threading.Lock()

    def client(kind):
        while not over.is_set():
            answer = kinds[kind]()
            with lock:
                answers[kind, answer.status_code] += 1

    first = post(server, "/start_request_profile", run_id="r0").json()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(client, kind) for kind in (*kinds, *kinds)]
        try:
            for i in range(1, RUNS):
                assert post(server, "/start_request_profile", run_id=f"r{i}").status_code == 200
        finally:
            over.set()
        for one in clients:
            one.result()
    server.settle()
    assert post(server, "/stop_request_profile").json() == {"run_id": f"r{RUNS - 1}"}
    assert set(answers) == {("speech", 200), ("chat", 200)}
    directories = [pathlib.Path(first["event_dir"].replace("/r0/", f"/r{i}/")) for i in range(RUNS)]
    wait_until(lambda: all(all_ended(one) for one in directories), "the files are not complete")
    got = counted(event for one in directories for event in events_of(one))
    for kind in kinds:
        other = wanted["chat" if kind == "speech" else "speech"]
        for name, count in wanted[kind].items():
            if name not in other and exact[kind](name[1]):
                assert got[name] == count * answers[kind, 200], (name, got[name], count, answers)
    for name in wanted["speech"].keys() & wanted["chat"].keys():
        if exact["chat"](name[1]):
            assert got[name] == sum(wanted[kind][name] * answers[kind, 200] for kind in kinds), (name, got[name], answers)
    assert server.metric("portico_profile_dropped_total") == 0


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's server ends otherwise")
def test_a_crash_leaves_files_that_can_be_read(folder, tmp_path):
    server = Server("--engine", "mock")
    directory = pathlib.Path(post(server, "/start_request_profile").json()["event_dir"])
    assert server.chat("hello", max_tokens=3).status_code == 200
    wait_until(lambda: "stage_input_received->stage_complete" in profile(directory).stdout, "nothing is written while the profile runs")
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    server.log.close()
    os.unlink(server.log.name)
    text = report(directory)
    assert "not ended" in text and "scheduler_prefill_start->scheduler_first_emit" in text


def test_portico_profile_records_a_server_and_reports(model, folder, tmp_path):
    over = threading.Event()

    def client():
        while not over.is_set():
            model.chat("hello there", max_tokens=5)

    thread = threading.Thread(target=client)
    thread.start()
    try:
        text = report(model.url, "--seconds", "1", "--out", tmp_path / "out")
    finally:
        over.set()
        thread.join()
    for part in ["# Requests: ", "## Stage breakdown", "preprocess_start->preprocess_end", "## Hop breakdown",
                 "frontend | engine", "## Steps", "## Timeline of "]:
        assert part in text, text
    page = (tmp_path / "out/report.html").read_text()
    assert "<svg" in page and "src=" not in page and "<script" not in page
    trace = json.loads((tmp_path / "out/trace.json").read_text())["traceEvents"]
    assert {"b", "e", "n", "s", "f", "X", "M"} <= {event["ph"] for event in trace}
    begun = collections.Counter((event["id"], event["name"]) for event in trace if event["ph"] == "b")
    assert begun == collections.Counter((event["id"], event["name"]) for event in trace if event["ph"] == "e")
    assert json.loads((tmp_path / "out/report.json").read_text())["request_count"] > 1


def test_an_address_without_http_is_that_of_a_server(model, folder):
    """It was looked for as a file, unlike in `portico top`."""
    done = profile(f"127.0.0.1:{model.port}", "--seconds", "0.1")
    assert "recording run_" in done.stderr and "no such file" not in done.stderr, done.stderr


def test_a_file_may_be_called_like_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events:1").mkdir()
    assert "events:1 has no events" in profile("events:1").stderr
    assert "there is no such file or folder" in profile("events").stderr
    assert "there is no such file or folder" in profile("events:x").stderr


def test_stages_in_processes_of_their_own_tell_their_part(start, folder, tmp_path):
    stages = (python("talk", "spell", "process: py, stream_to: [pass]"),
              "name: pass, factory_path: portico.pass, process: p1, stream_to: [encode]", ENCODE)
    server = start("--pipeline", str(write(tmp_path / "p.yaml", *stages)), "--engine", "mock")

    def work():
        assert say(server, "one two three").status_code == 200

    events = recorded(server, "parts", work)
    assert len({event["pid"] for event in events if event["stage"] in ("talk", "pass", "encode")}) == 3
    assert len({event["request_id"] for event in events}) == 1
    directory = folder / "parts/events"
    breakdown = json.loads(report(directory, "--format", "json"))
    hops = {(row["src"], row["dst"], row["kind"]): row for row in breakdown["hop_breakdown"]}
    for source, target, parts in [("talk", "pass", 4), ("pass", "encode", 4), ("encode", "coordinator", 4)]:
        assert hops[source, target, "stream_chunk"]["count"] == parts, hops
        assert 0 <= hops[source, target, "stream_chunk"]["avg_ms"] < 60000
    own = {(row["src"], row["dst"], row["kind"]) for row in breakdown["portico"]["hop_breakdown"]}
    assert ("coordinator", "talk", "entry") in own
    done = {row["stage"] for row in breakdown["stage_breakdown"] if row["interval"] == "stage_input_received->stage_complete"}
    assert done == {"talk", "pass", "encode"}
    # A new process joins the run that goes on.
    post(server, "/start_request_profile", run_id="again")
    runs = lambda: len(list((folder / "again/events").glob("run_*.json")))  # noqa: E731
    wait_until(lambda: runs() == 3, "a process has not begun the run")
    before = children(server)
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: len(children(server)) == 2 and children(server) != before, "no new process")
    wait_until(lambda: requests.get(server.url + "/health", timeout=60).text.strip() == "ok", "the stage is not back")
    assert say(server, "one").status_code == 200
    post(server, "/stop_request_profile")
    wait_until(lambda: runs() >= 4, "the new process keeps no profile")


def test_a_gateway_profiles_its_workers_too(folder):
    worker = Process("serve", "--engine", "mock")
    worker.wait_ready()
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--worker-urls", worker.url)
    gateway.wait_ready("/readiness")
    try:
        started = post(gateway, "/start_request_profile", run_id="fleet").json()
        assert [one["status"] for one in started["workers"]] == [200]
        answer = post(gateway, "/v1/chat/completions", messages=[{"role": "user", "content": "hello"}], max_tokens=2)
        assert answer.status_code == 200
        stopped = post(gateway, "/stop_request_profile").json()
        assert stopped["run_id"] == "fleet"
    finally:
        ended = gateway.end(), worker.end()
    assert ended == (0, 0), gateway.output()[-3000:]
    breakdown = json.loads(report(folder / "fleet", "--format", "json"))
    assert breakdown["request_count"] == 1
    hops = {(row["src"], row["dst"], row["kind"]) for row in breakdown["portico"]["hop_breakdown"]}
    name = next(iter(breakdown["timelines"].values()))
    assert {"gateway", "frontend", "engine"} <= {event["stage"] for event in name}
    assert {kind for _, _, kind in hops} >= {"request", "first_byte"}


def test_files_of_sglang_omni_are_read(tmp_path):
    lines = [("coordinator", "request_admission", 0, {"entry_stage": "talk"}), ("talk", "stage_input_received", 1, {"from_stage": "coordinator"}),
             ("talk", "stage_hop_sent", 3, {"to_stage": "vocode"}), ("vocode", "stage_input_received", 4, {"from_stage": "talk"}),
             ("talk", "stage_complete", 5, {"terminal": False, "next": ["vocode"]}), ("vocode", "code2wav_decode_start", 6, {"frames": 10}),
             ("vocode", "stage_complete", 9, {"terminal": True, "next": None})]
    with open(tmp_path / "events_coordinator_7.jsonl", "w") as file:
        for stage, name, at, metadata in lines:
            file.write(json.dumps({"request_id": "r", "stage": stage, "event_name": name, "timestamp_ns": 10**18 + at * 10**6,
                                   "run_id": "run", "pid": 7, "metadata": metadata}) + "\n")
        file.write("not json\n")
    rows = json.loads(report(tmp_path, "--format", "json"))
    assert rows["stage_breakdown"][0] == {"stage": "vocode", "interval": "stage_input_received->stage_complete", "count": 1, "total_ms": 5,
                                          "avg_ms": 5, "p50_ms": 5, "p95_ms": 5, "max_ms": 5}
    assert rows["hop_breakdown"] == [{"src": "talk", "dst": "vocode", "kind": "payload", "count": 1, "total_ms": 1, "avg_ms": 1,
                                      "p50_ms": 1, "p95_ms": 1, "max_ms": 1}]
    assert rows["portico"]["malformed"] == 1


def test_where_the_report_was_written_is_said_after_it(tmp_path):
    """It came in the middle of the report where both went to one pipe."""
    with open(tmp_path / "events_coordinator_7.jsonl", "w") as file:
        for i in range(500):
            for name in ("stage_input_received", "stage_complete"):
                file.write(json.dumps({"request_id": f"r{i}", "stage": f"s{i}", "event_name": name, "timestamp_ns": 10**18 + i, "run_id": "run",
                                       "pid": 7}) + "\n")
    done = subprocess.run([str(BINARY), "profile", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=WAIT_SECONDS)
    assert done.returncode == 0 and len(done.stdout) > 20000, done.stdout
    assert done.stdout.count("written to ") == 1 and done.stdout.splitlines()[-1].startswith("written to "), done.stdout[-300:]


def test_what_has_no_events_is_refused(tmp_path):
    """Of any folder it was said that no request was recorded."""
    done = profile(tmp_path)
    assert done.returncode == 1 and "has no events: it is not a profile" in done.stderr, done.stderr
    (tmp_path / "notes.txt").write_text("hello\nworld\n")
    assert "has no events: none of 2 lines is an event" in profile(tmp_path / "notes.txt").stderr
    assert "has no events: it is not a profile" in profile(tmp_path).stderr
    assert not (tmp_path / "report.txt").exists()
    (tmp_path / "events").mkdir()
    (tmp_path / "events/run_frontend_7.json").write_text('{"ended": true}')
    assert "has no events: no request was recorded" in profile(tmp_path).stderr
    (tmp_path / "events/run_frontend_7.json").unlink()
    (tmp_path / "events/events_frontend_7.jsonl").touch()
    assert "has no events: no request was recorded" in profile(tmp_path).stderr
