"""SGLang's controls at the gateway: which go to all workers, which to one, and whose key they need."""
import json

import pytest
import requests
from conftest import wait_until
from gateway_fleet import Process, RawWorker, front


def ok(connection, head, body):
    answer = b'"' + json.loads(body)["session_id"].encode() + b'"' if b" /open_session " in head else b"{}"
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))


@pytest.fixture(scope="module")
def fleet():
    """(workers, gateway) with a key for clients and one for operators."""
    with front([ok, ok], "--api-key", "client", "--control-plane-api-keys", "ops:Operations:admin:operator") as made:
        yield made


def ask(made, method, path, key="operator", **fields):
    return requests.request(method, made.url + path, json=fields, headers={"Authorization": f"Bearer {key}"}, timeout=60)


def asked(workers, path):
    """What each worker has got for that path, and forgets."""
    found = [[json.loads(body) for head, body in worker.requests if head.split(b" ")[1].decode() == path] for worker in workers]
    for worker in workers:
        worker.requests.clear()
    return found


@pytest.mark.parametrize("method, path", [
    ("POST", "/update_weights_from_tensor"), ("POST", "/update_weights_from_distributed"), ("POST", "/init_weights_update_group"),
    ("POST", "/freeze_gc"), ("POST", "/slow_down"), ("POST", "/update_weight_version"), ("POST", "/set_trace_level"),
    ("POST", "/hicache/storage-backend/clear"), ("PUT", "/hicache/storage-backend"), ("DELETE", "/hicache/storage-backend"),
    ("POST", "/start_expert_distribution_record"), ("POST", "/get_internal_state"), ("POST", "/weights_checker"),
    ("POST", "/init_weight_transfer_engine"), ("POST", "/start_weight_update"), ("POST", "/start_draft_weight_update"),
    ("POST", "/update_weights"), ("POST", "/finish_weight_update"), ("POST", "/abort_requests"),
    ("POST", "/weight_checker"), ("POST", "/collective_rpc"), ("POST", "/reset_mm_cache"), ("POST", "/reset_encoder_cache")])
def test_a_control_of_a_server_goes_to_all_and_needs_the_operators_key(fleet, method, path):
    """It was 404."""
    workers, made = fleet
    assert ask(made, method, path, "client", a=1).status_code == 401
    answer = ask(made, method, path, a=1)
    assert answer.status_code == 200 and [one["status"] for one in answer.json()["workers"]] == [200, 200]
    assert asked(workers, path) == [[{"a": 1}], [{"a": 1}]]


def test_a_control_that_a_worker_redirects_has_not_been_done():
    """It was taken for done."""
    def elsewhere(connection, head, body):
        connection.sendall(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n")

    with front([ok, elsewhere]) as (_, made):
        answer = requests.post(made.url + "/flush_cache", timeout=60)
        assert answer.status_code == 502 and answer.json()["success"] is False
        assert sorted(one["status"] for one in answer.json()["workers"]) == [200, 307]


@pytest.mark.parametrize("path", ["/is_paused", "/is_sleeping"])
def test_the_workers_are_paused_if_each_of_them_is(path):
    """It was 404: whoever had paused vLLM's servers through the gateway had to ask each of them."""
    says = [b"true", b"true"]

    def worker(index):
        def answer(connection, head, body):
            assert head.split(b" ")[0] == b"GET"
            text = b'{"%s": %s}' % (path[1:].encode(), says[index]) if says[index] else b"[]"
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        return answer

    with front([worker(0), worker(1)], "--control-plane-api-keys", "ops:Operations:admin:operator", "eyes:Eyes:user:reader") as (_, made):
        for said, whole in [((b"true", b"true"), True), ((b"true", b"false"), False), ((b"false", b"false"), False), ((b"true", b""), False)]:
            says[:] = said
            answer = ask(made, "GET", path, "reader")
            assert answer.status_code == 200 and answer.json()[path[1:]] is whole
            assert [one["status"] for one in answer.json()["workers"]] == [200, 200]
        assert ask(made, "GET", path, "nobody").status_code == 401
        assert ask(made, "POST", path, "reader").status_code == 403


@pytest.mark.parametrize("path, says, whole", [
    ("/get_world_size?include_dp=false", (b'{"world_size": 2}', b'{"world_size": 4}'), {"world_size": 6}),
    ("/weight_info", (b'{"weight_version": "7"}', b'{"weight_version": "7"}'), {"weight_version": "7"}),
    ("/weight_info", (b'{"weight_version": "7"}', b'{"weight_version": "8"}'), {"weight_version": None})])
def test_what_all_workers_say_of_their_weights_is_one_answer(path, says, whole):
    """It was 404: a trainer had to ask each of vLLM's servers."""
    def worker(text):
        def answer(connection, head, body):
            assert head.split(b" ")[:2] == [b"GET", path.encode()]
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        return answer

    with front([worker(text) for text in says], "--control-plane-api-keys", "eyes:Eyes:user:reader") as (_, made):
        answer = ask(made, "GET", path, "reader")
        assert answer.status_code == 200 and {**answer.json(), **whole} == answer.json()
        assert sorted(one["answer"] for one in answer.json()["workers"]) == sorted(text.decode() for text in says)
        assert ask(made, "GET", path, "nobody").status_code == 401


@pytest.mark.parametrize("path, key", [("/parse/function_call", "client"), ("/parse/reasoning", "client"), ("/generative_scoring", "client"),
                                       ("/inference/v1/generate", "client"), ("/get_weights_by_name", "operator")])
def test_what_any_worker_can_say_is_asked_of_one(fleet, path, key):
    workers, made = fleet
    if key == "operator":
        assert ask(made, "POST", path, "client").status_code == 401
    assert ask(made, "POST", path, key, a=1).json() == {}
    assert sorted(asked(workers, path)) == [[], [{"a": 1}]]


@pytest.mark.parametrize("named", [{"session_id": "mine"}, {"session_id": None}, {}])
def test_a_session_has_one_name_on_all_workers(fleet, named):
    workers, made = fleet
    answer = ask(made, "POST", "/open_session", "client", capacity_of_str_len=100, **named)
    assert answer.status_code == 200
    name = answer.json()
    assert name == named.get("session_id") or (not named.get("session_id") and len(name) > 8)
    assert asked(workers, "/open_session") == [[{"capacity_of_str_len": 100, "session_id": name}]] * 2
    assert ask(made, "POST", "/close_session", "client", session_id=name).status_code == 200
    assert asked(workers, "/close_session") == [[{"session_id": name}]] * 2


@pytest.mark.parametrize("flags", [(), ("--api-key", "client")])
def test_what_can_name_code_is_for_operators_with_a_key_of_their_own(flags):
    """Workers demand an --admin-api-key for it, which the gateway put in the place of any client's. /collective_rpc, which names a
    method of vLLM's workers, was everybody's."""
    with front([ok], *flags) as (workers, made):
        for method, path in [("PUT", "/hicache/storage-backend"), ("DELETE", "/hicache/storage-backend"), ("POST", "/collective_rpc"),
                             ("GET", "/collective_rpc")]:
            refused = ask(made, method, path, "client", a=1)
            assert refused.status_code == 403 and "--control-plane-api-keys" in refused.text, path
            # The gateway called it an invalid request, where serve names the permission.
            assert refused.json()["error"]["type"] == "permission_error"
        assert ask(made, "POST", "/reset_prefix_cache", "client").status_code == 200
        assert [len(found) for found in asked(workers, "/reset_prefix_cache")] == [1]
        assert ask(made, "POST", "/flush_cache", "nobody").status_code == (401 if flags else 200)


def test_a_user_key_for_readings_does_not_name_code():
    with front([ok], "--control-plane-api-keys", "ops:Operations:admin:operator", "eyes:Eyes:user:reader") as (workers, made):
        for method in ("GET", "POST"):
            assert ask(made, method, "/collective_rpc", "reader", a=1).status_code == 403
        assert ask(made, "POST", "/collective_rpc", a=1).status_code == 200
        assert asked(workers, "/collective_rpc") == [[{"a": 1}]]


@pytest.mark.parametrize("path", ["/pd_role_switch", "/send_weights_to_remote_instance", "/dumper/x", "/scale_elastic_ep"])
def test_what_concerns_one_server_is_not_guessed(fleet, path):
    workers, made = fleet
    answer = ask(made, "POST", path)
    assert answer.status_code == 501 and "send it to that server" in answer.text
    assert asked(workers, path) == [[], []]


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_an_adapter_is_a_model_as_soon_as_it_is_loaded(prefix):
    """/v1/models and the routing by models knew it only once its worker had been down."""
    def serve(names):
        worker.models = json.dumps({"data": [{"id": name} for name in names]}).encode()

    def known():
        return [card["id"] for card in requests.get(made.url + "/v1/models", timeout=60).json()["data"]]

    def load(connection, head, body):
        serve(["m"] if b"unload_lora" in head else ["m", "adapter"])
        ok(connection, head, body)

    worker = RawWorker(load)
    serve(["m"])
    made = Process("route", "--host", "127.0.0.1", "--prometheus-port", "0", "--enable-igw", "--health-check-interval-secs", "600",
                   "--worker-urls", worker.url)
    try:
        wait_until(lambda: made.answers("/readiness") and known() == ["m"], made.output)
        assert requests.post(made.url + prefix + "/load_lora_adapter", json={"lora_name": "adapter"}, timeout=60).status_code == 200
        wait_until(lambda: known() == ["adapter", "m"], lambda: str(known()))
        assert requests.post(made.url + prefix + "/unload_lora_adapter", json={"lora_name": "adapter"}, timeout=60).status_code == 200
        wait_until(lambda: known() == ["m"], lambda: str(known()))
        assert made.end() == 0
    finally:
        made.kill()
        worker.stop()
