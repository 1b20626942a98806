"""Workers over HTTP: the fields of smg's and sglang-router's API, and what may change of a worker that is there."""
import pytest
import requests
from conftest import wait_until
from gateway_fleet import Process, RawWorker, fleets  # noqa: F401


def ok(connection, head, body):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


@pytest.fixture
def empty():
    """A gateway without workers."""
    made = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--disable-load-monitoring", "--api-key", "client")
    wait_until(lambda: made.answers("/health"), made.output)
    yield made
    assert made.end() == 0, made.output()[-3000:]


def ask(made, method, path, **fields):
    return requests.request(method, made.url + path, json=fields, headers={"Authorization": "Bearer client"}, timeout=60)


def healthy(made, name):
    return ask(made, "GET", f"/workers/{name}").json()["is_healthy"]


def test_a_worker_may_have_the_fields_of_smg(empty):
    """priority and cost were refused as unknown, and so was a model's card."""
    worker = RawWorker(ok)
    try:
        added = ask(empty, "POST", "/workers", url=worker.url, connection_mode="http", runtime="sglang", worker_type="regular",
                    models=[{"id": "m"}], labels={"zone": "a"}, priority=80, cost=0.5, bootstrap_port=None, health=None)
        assert added.status_code == 202, added.text
        told = added.json()
        assert told["worker_id"] == told["id"]
        assert [told[name] for name in ("priority", "cost", "runtime_type", "model_id", "labels")] == [80, 0.5, "sglang", "m", {"zone": "a"}]
        refused = ask(empty, "POST", "/workers", url="http://127.0.0.1:9", tokenizer_path="/models/m")
        assert refused.status_code == 400 and "tokenizer_path" in refused.text and "models" in refused.text
        assert refused.json()["error"]["param"] == "tokenizer_path"
        unknown = ask(empty, "POST", "/workers", uri="http://127.0.0.1:9")
        assert unknown.status_code == 400 and unknown.json()["error"]["param"] == "uri" and "the fields are url, " in unknown.text
    finally:
        worker.stop()


def test_a_worker_keeps_its_name_and_its_other_values_when_one_changes(empty):
    """PUT took nothing but draining."""
    worker = RawWorker(ok)
    try:
        name = ask(empty, "POST", "/workers", url=worker.url, api_key="old", labels={"zone": "a", "gpu": "x"}).json()["id"]
        wait_until(lambda: healthy(empty, name), empty.output)

        def key():
            assert ask(empty, "POST", "/v1/completions", prompt="x").text == "ok"
            lines = worker.requests[-1][0].decode().lower().split("\r\n")
            return [line.split()[-1] for line in lines if line.startswith("authorization:")]

        assert key() == ["old"]
        changed = ask(empty, "PUT", f"/workers/{name}", api_key="new", priority=1, max_requests=7, labels={"zone": "b", "gpu": None})
        assert changed.status_code == 200, changed.text
        told = changed.json()
        assert (told["id"], told["priority"], told["cost"], told["max_requests"], told["labels"]) == (name, 1, 1, 7, {"zone": "b"})
        assert "new" not in changed.text, "a key is told to nobody"
        assert key() == ["new"]
        assert ask(empty, "PATCH", f"/workers/{name}", api_key="").status_code == 200
        assert key() == ["client"], "without a key of its own it gets the gateway's"
        refused = ask(empty, "PUT", f"/workers/{name}", priority=9, url="http://127.0.0.1:9")
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "url"
        assert ask(empty, "GET", f"/workers/{name}").json()["priority"] == 1
        for drains in (True, True, False):
            assert ask(empty, "PATCH", f"/workers/{name}", draining=drains).json()["draining"] is drains
        assert [empty.output().count(words) for words in ("drains: it gets", "takes requests again")] == [1, 1]
    finally:
        worker.stop()


def test_a_worker_that_takes_tokens_is_asked_with_its_new_key(empty):
    server = Process("serve", "--engine", "mock", "--api-key", "right")
    try:
        wait_until(server.answers, server.output)
        added = ask(empty, "POST", "/workers", url=f"127.0.0.1:{server.port}", connection_mode="grpc", api_key="right")
        assert added.status_code == 202 and added.json()["connection_mode"] == "grpc", added.text
        name = added.json()["id"]
        wait_until(lambda: healthy(empty, name), empty.output)

        def status():
            return ask(empty, "POST", "/v1/completions", prompt="x", max_tokens=1).status_code

        assert status() == 200
        ask(empty, "PUT", f"/workers/{name}", api_key="wrong")
        assert status() != 200
        ask(empty, "PUT", f"/workers/{name}", api_key="right")
        wait_until(lambda: status() == 200, empty.output)
    finally:
        server.kill()


def warnings(gateway, words):
    return [line for line in gateway.output().splitlines() if "] warning" in line and words in line]


def test_a_worker_whose_key_the_gateway_lacks_is_named(fleets):  # noqa: F811
    """It was healthy, and its clients were told by the worker to send a key, as if the gateway wanted one."""
    fleet = fleets(1, workers=("--api-key", "k"))
    wait_until(lambda: warnings(fleet.gateway, "it wants an API key"), fleet.gateway.output)
    [said] = warnings(fleet.gateway, "it wants an API key")
    assert f"worker w1 {fleet.workers[0].url} " in said and "`api-key`" in said and "401" in said
    assert fleet.chat().status_code == 401
    assert requests.patch(fleet.url + "/workers/w1", json={"api_key": "k"}, timeout=60).status_code == 200
    wait_until(lambda: fleet.state()["workers"][0]["model_id"] == "demo", fleet.state)
    assert fleet.chat().status_code == 200
    assert len(warnings(fleet.gateway, "it wants an API key")) == 1


def test_a_worker_that_refuses_the_gateways_key_is_named(fleets):  # noqa: F811
    server = Process("serve", "--engine", "mock", "--api-key", "k")
    try:
        server.wait_ready()
        http = fleets(0, "--api-key", "other", urls=[server.url]).gateway
        wait_until(lambda: warnings(http, "does not accept the API key that the gateway sends"), http.output)
        # Of a worker that takes tokens nothing can be asked without its key: it is unhealthy.
        grpc = fleets(0, urls=[f"grpc://127.0.0.1:{server.port}"]).gateway
        wait_until(lambda: warnings(grpc, "or wants one"), grpc.output)
        assert "w1" in warnings(grpc, "or wants one")[0] and "`api-key`" in warnings(grpc, "or wants one")[0]
    finally:
        server.kill()
