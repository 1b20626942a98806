"""`portico route` before real workers: what clients and operators send and get, and how it ends."""
import contextlib
import json
import signal
import socket
import subprocess
import threading

import pytest
import requests
from conftest import BINARY, WAIT_SECONDS, free_port, wait_until
from gateway_fleet import Fleet, Process, events, fleets, front, mock_worker, raw  # noqa: F401 (fleets and raw are fixtures)


@pytest.fixture(scope="module")
def pair():
    fleet = Fleet(2, "--policy", "round_robin", "--access-log", "--show-workers")
    fleet.wait_healthy(2)
    yield fleet
    fleet.stop()


def test_whole_answers_take_turns_among_the_workers(pair):
    workers = {pair.chat().headers["x-portico-worker"] for _ in range(4)}
    assert len(workers) == 2


def test_a_stream_arrives_as_the_worker_sends_it(pair):
    said = events(pair.chat(stream=True))
    assert said[-1] == "[DONE]"
    assert all(json.loads(event)["object"] == "chat.completion.chunk" for event in said[:-1])
    assert len(said) > 4


def test_errors_of_a_worker_pass_as_they_are(pair):
    answer = pair.chat(temperature="hot")
    assert answer.status_code == 400
    assert "temperature" in answer.json()["error"]["message"]


def test_models_are_the_union_and_facts_come_from_a_worker(pair):
    models = requests.get(pair.url + "/v1/models", timeout=60).json()
    assert [model["id"] for model in models["data"]] == ["demo"]
    assert requests.get(pair.url + "/get_model_info", timeout=60).json()["served_model_name"] == "demo"


def test_controls_go_to_all_workers(pair):
    answer = requests.post(pair.url + "/flush_cache", timeout=60).json()
    assert answer["success"] and len(answer["workers"]) == 2
    # sglang-router's and smg's.
    assert (answer["status"], answer["workers_flushed"], answer["total_workers"]) == ("success", 2, 2)


def test_loads_name_workers_by_their_url_as_other_gateways_do_and_by_their_id(pair):
    """They had the id alone: what joined them with the workers by URL found none."""
    def loads():
        return requests.get(pair.url + "/get_loads", timeout=60).json()

    ids = {worker["url"]: worker["id"] for worker in pair.state()["workers"]}
    wait_until(lambda: len(loads()["loads"]) == len(ids), "the workers have not reported")
    for kind, fields in (("workers", ("load",)), ("loads", ("num_running_reqs", "num_waiting_reqs", "token_usage"))):
        said = loads()[kind]
        assert {worker["worker"]: worker["id"] for worker in said} == ids
        assert all(worker[field] >= 0 for worker in said for field in fields), said


def test_a_method_that_a_path_does_not_have_is_told_with_those_it_has(pair):
    for method, path, methods in (("PATCH", "/workers", "GET, POST"), ("POST", "/metrics", "GET"), ("GET", "/add_worker", "POST"),
                                  ("POST", f"/workers/{pair.state()['workers'][0]['id']}", "GET, PUT, PATCH, DELETE")):
        refused = requests.request(method, pair.url + path, timeout=60)
        assert refused.status_code == 405 and refused.headers["allow"] == methods
        assert refused.json()["error"]["message"] == f"{method} is not allowed on {path}; use {methods}"


def test_unknown_paths_below_v1_are_the_workers_to_judge_and_others_are_not_found(pair):
    assert requests.get(pair.url + "/v1/nothing", timeout=60).status_code == 404
    assert requests.get(pair.url + "/nothing", timeout=60).json()["error"]["message"] == "unknown path: GET /nothing"
    slip = requests.post(pair.url + "/chat/completions", json={}, timeout=60).json()["error"]["message"]
    assert "; did you mean /v1/chat/completions?" in slip


def test_workers_can_be_added_drained_and_removed(pair):
    extra = mock_worker()
    extra.wait_ready()
    try:
        added = requests.post(pair.url + "/workers", json={"url": extra.url}, timeout=60)
        assert added.status_code == 202
        worker = added.json()["id"]
        again = requests.post(pair.url + "/workers", json={"url": extra.url}, timeout=60)
        assert again.status_code == 409 and again.json()["error"]["message"] == f"worker {extra.url} exists already ({worker})"
        pair.wait_healthy(3)
        drained = requests.put(f"{pair.url}/workers/{worker}", json={"draining": True}, timeout=60)
        assert drained.json()["draining"] is True
        assert worker not in {pair.chat().headers["x-portico-worker"] for _ in range(6)}
        assert requests.delete(f"{pair.url}/workers/{worker}", timeout=60).status_code == 200
        assert requests.get(f"{pair.url}/workers/{worker}", timeout=60).status_code == 404
        assert requests.post(f"{pair.url}/add_worker?url={extra.url}", timeout=60).status_code == 200
        assert extra.url in requests.get(pair.url + "/list_workers", timeout=60).json()["urls"]
        assert requests.post(f"{pair.url}/remove_worker?url={extra.url}", timeout=60).status_code == 200
    finally:
        extra.kill()
    for wrong in ({}, {"url": 1}, {"url": "ftp://a:1"}, *({"url": "http://a:1", **field} for field in (
            {"nothing": 1}, {"max_requests": "x"}, {"max_requests": -1}, {"max_requests": 1.5}, {"api_key": 5},
            {"api_key": "k\r\nx: y"}, {"model_id": 5}, {"worker_type": 5}, {"bootstrap_port": 2**32 + 80}))):
        assert requests.post(pair.url + "/workers", json=wrong, timeout=60).status_code == 400


def test_a_worker_is_named_by_its_escaped_url(pair):
    """The slashes stayed escaped: /add_worker said 400, the others 404."""
    url = "http://127.0.0.1:9"
    escaped = "http%3A%2F%2F127.0.0.1%3a9"
    for path in (f"/remove_worker?url={escaped}", f"/workers/{escaped}"):
        assert requests.post(f"{pair.url}/add_worker?url={escaped}", timeout=60).status_code == 200
        assert url in requests.get(pair.url + "/list_workers", timeout=60).json()["urls"]
        method = "DELETE" if path.startswith("/workers/") else "POST"
        assert requests.request(method, pair.url + path, timeout=60).status_code == 200
        assert url not in requests.get(pair.url + "/list_workers", timeout=60).json()["urls"]


def test_metrics_tell_of_each_worker(pair):
    pair.chat()
    said = requests.get(pair.url + "/metrics", timeout=60).text
    assert 'portico_gateway_worker_healthy{worker="w1"} 1' in said
    assert 'portico_gateway_worker_paused{worker="w1"} 0' in said
    assert f'portico_gateway_worker_info{{worker="w1",role="regular",model="demo",url="{pair.workers[0].url}"}} 1' in said
    assert requests.post(pair.url + "/v1/nothing", json={}, timeout=60).status_code == 404
    wait_until(lambda: pair.gateway.metric("portico_gateway_responses_total") == pair.gateway.metric("portico_gateway_requests_total"),
               "a request has not ended")
    said = requests.get(pair.url + "/metrics", timeout=60).text
    ended = {line.split('"')[1]: int(line.split()[-1]) for line in said.splitlines() if line.startswith("portico_gateway_responses_total{")}
    assert list(ended) == ["1xx", "2xx", "3xx", "4xx", "5xx"] and ended["2xx"] >= 1 and ended["4xx"] >= 1
    assert pair.gateway.metric("portico_gateway_worker_requests_total") >= 1
    assert pair.gateway.metric("portico_gateway_worker_requests") == 0
    with_addresses = [line.split("{")[0] for line in said.splitlines() if "127.0.0.1" in line]
    assert set(with_addresses) == {"portico_gateway_worker_info"}  # with --show-workers


def test_the_access_log_says_where_a_request_went_and_why(pair):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    requests.post(pair.url + "/v1/completions", json={"prompt": "x", "max_tokens": 1}, timeout=60,
                  headers={"traceparent": trace, "x-request-id": "mine"})

    def lines():
        return [line for line in pair.gateway.output().splitlines() if '"mine"' in line]
    wait_until(lines, pair.gateway.output)
    entry = json.loads(lines()[0][lines()[0].index("{"):])
    assert entry["reason"] == "turn" and entry["worker"].startswith("w") and entry["traceparent"] == trace


def test_the_limit_of_requests_is_exact_and_the_queue_bounded():
    hold = threading.Event()

    def answer(connection, head, body):
        hold.wait(WAIT_SECONDS)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with front([answer], "--max-concurrent-requests", "2", "--queue-size", "1", "--access-log") as ([worker], gateway):
        def post():
            return requests.post(gateway.url + "/v1/completions", json={}, timeout=WAIT_SECONDS)
        codes = []
        threads = [threading.Thread(target=lambda: codes.append(post().status_code)) for _ in range(3)]
        try:
            for thread in threads:
                thread.start()
            wait_until(lambda: len(worker.requests) == 2 and gateway.metric("portico_gateway_queued") == 1, gateway.output)
            for refused in (post(), post()):
                assert refused.status_code == 429 and "retry-after" in refused.headers
            wait_until(lambda: gateway.output().count('"error":"queue_full"') == 2, gateway.output)
            assert gateway.output().count(f'"status":429,"bytes":{len(refused.content)},') == 2  # it was 0
            assert len(worker.requests) == 2
        finally:
            hold.set()
            for thread in threads:
                thread.join()
        assert codes == [200] * 3


def test_a_drain_lets_requests_finish(fleets):
    fleet = fleets(1, workers=("--mock-itl-ms", "50"))
    fleet.wait_healthy(1)
    answer = fleet.chat(stream=True, max_tokens=20)
    fleet.gateway.process.terminate()
    assert events(answer)[-1] == "[DONE]"
    assert fleet.gateway.process.wait(60) == 0


def test_a_reload_takes_workers_in_and_out_and_refuses_a_wrong_file(tmp_path):
    workers = [mock_worker() for _ in range(2)]
    file = tmp_path / "fleet.yaml"
    file.write_text(f"policy: round_robin\nworkers:\n  - url: {workers[0].url}\n")
    gateway = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--config", file)

    def urls():
        return requests.get(gateway.url + "/list_workers", timeout=60).json()["urls"]

    try:
        for worker in workers:
            worker.wait_ready()
        gateway.wait_ready("/readiness")
        file.write_text(f"policy: random\nworkers:\n  - {workers[1].url}\n")
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: urls() == [workers[1].url], lambda: str(urls()))
        file.write_text("nonsense: 1\n")
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "nonsense" in gateway.output(), "the fault is not told")
        assert urls() == [workers[1].url]
        file.write_text("# all of it is a comment\n")  # this removed all workers
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "it is empty; nothing was changed" in gateway.output(), gateway.output)
        assert urls() == [workers[1].url]
        assert gateway.end() == 0
    finally:
        for process in (*workers, gateway):
            process.kill()


def test_keys_guard_the_gateway_and_go_to_workers(raw):
    worker, gateway = raw(lambda connection, head, body: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "--api-key", "secret")
    assert requests.post(gateway.url + "/v1/completions", json={}, timeout=60).status_code == 401
    assert requests.get(gateway.url + "/workers", timeout=60).status_code == 401
    assert not worker.requests
    requests.post(gateway.url + "/v1/completions", json={}, timeout=60, headers={"Authorization": "Bearer secret"})
    assert b"authorization: Bearer secret" in worker.requests[-1][0]


def test_workers_report_their_load_and_their_metrics_are_merged(fleets):
    fleet = fleets(2, "--load-monitor-interval", "0.2", workers=("--max-total-tokens", "4096"))
    fleet.wait_healthy(2)
    fleet.chat()
    wait_until(lambda: all(worker["reported_load"] for worker in fleet.state()["workers"]), fleet.state)
    for worker in fleet.state()["workers"]:
        assert worker["reported_load"]["running_requests"] == 0
        assert worker["reported_load"]["age_secs"] < 60
    merged = requests.get(fleet.url + "/engine_metrics", timeout=60)
    assert merged.headers["content-type"].startswith("text/plain")
    lines = merged.text.splitlines()
    assert len([line for line in lines if line.startswith("# TYPE")]) == len({line for line in lines if line.startswith("# TYPE")})
    for worker in ("w1", "w2"):
        assert any(f'worker="{worker}"' in line for line in lines)
    assert "127.0.0.1" not in merged.text


def test_a_worker_that_has_no_report_is_left_alone(fleets):
    fleet = fleets(1, "--disable-load-monitoring")
    fleet.wait_healthy(1)
    assert fleet.state()["workers"][0]["reported_load"] is None


def test_top_shows_the_workers_of_a_gateway(pair):
    def top(*words):
        return subprocess.run([str(BINARY), "top", *words], capture_output=True, text=True, timeout=60, check=False)

    pair.chat()
    shown = top(pair.url, "--count", "1")
    assert shown.returncode == 0, shown.stderr
    head, _, names, *rows = shown.stdout.splitlines()
    assert head.startswith(f"{pair.url}  2 of 2 workers healthy") and names.split()[:2] == ["WORKER", "STATE"]
    assert [row.split()[:3] for row in rows] == [["w1", "healthy", "closed"], ["w2", "healthy", "closed"]]
    assert len(top(pair.url, "--count", "2", "--interval", "0.1").stdout.splitlines()) == 10
    gone = top(f"127.0.0.1:{free_port()}", "--count", "1")
    assert gone.returncode == 1 and "127.0.0.1" in gone.stderr
    other = top(pair.workers[0].url, "--count", "1")
    assert other.returncode == 1 and "404" in other.stderr
    assert top("ftp://a:1").returncode == 2


def test_top_asks_whether_a_server_that_closes_the_connection_wants_tls():
    """It said that the connection was lost (connection lost)."""
    listener = socket.create_server(("127.0.0.1", 0))

    def close_all():
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                connection.recv(65536)
                connection.close()

    threading.Thread(target=close_all, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        done = subprocess.run([str(BINARY), "top", url, "--count", "1"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1 and done.stderr == f"portico top: {url}: it closed the connection; is it https?\n"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
