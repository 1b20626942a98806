"""vLLM's workers have no /health_generate: whether their engines step is read from the counters of their /metrics."""
import json
import threading
import time

import pytest
import requests
from conftest import wait_until
from gateway_fleet import RawWorker, events
from test_gateway_stalls import CHAT, HEAD, LIMIT, Hanging, at_rest, event, route, statuses  # noqa: F401 (route is a fixture)

PAGE = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} {running}.0
vllm:num_requests_waiting{{engine="0",model_name="m"}} 0.0
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} {usage}
vllm:prompt_tokens_total{{engine="0",model_name="m"}} {prompts}.0
vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}.0
process_cpu_seconds_total {seconds}
"""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Vllm(Hanging):
    """A vLLM worker whose engine hangs until `lives` is set. `moves` steps before each page."""

    def __init__(self, moves=lambda worker: None, **how):
        self.heads, self.tokens, self.prompts, self.usage, self.moves = [], 7, 90, 0.25, moves
        self.refused = ()  # routes that it answers 404
        super().__init__(**how)
        self.models = b'{"data":[{"id":"m"}]}'
        self.infers, self.page = lambda: 404, self.write_page

    def write_page(self, head):
        self.heads.append(head)
        self.moves(self)
        return PAGE.format(running=1, usage=self.usage, prompts=self.prompts, tokens=self.tokens, seconds=time.monotonic()).encode()

    def _answer(self, connection, head, body):
        if head.split(b" ")[1].decode() in self.refused:
            return connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        return super()._answer(connection, head, body)

    def requests_of(self, path):
        return [(head, body) for head, body in self.requests if head.startswith(b"POST %s " % path.encode())]


@pytest.fixture
def vllm():
    made = []

    def make(*what, **how):
        made.append(Vllm(*what, **how))
        return made[-1]

    yield make
    for worker in made:
        worker.stop()


def chat(gateway, **fields):
    return requests.post(gateway.url + "/v1/chat/completions", json={**CHAT, **fields}, timeout=120, stream=fields.get("stream", False))


def in_background(gateway, count):
    """Statuses to come, and the threads that ask."""
    got = []
    clients = [threading.Thread(target=lambda: got.append(chat(gateway).status_code)) for _ in range(count)]
    for client in clients:
        client.start()
    return got, clients


def wait_beyond_the_limit():
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 2 * LIMIT + 2, "")


def test_a_vllm_engine_that_hangs_loses_its_whole_answers_and_is_used_again_when_it_infers(vllm, route):  # noqa: F811
    # Its /health answered 200 all the time: its requests waited for half an hour.
    ill = vllm()
    good = RawWorker(lambda connection, head, body: connection.sendall(OK))
    try:
        gateway = route(good.url)
        assert requests.post(gateway.url + "/workers", json={"url": ill.url, "api_key": "its own"}, timeout=60).status_code < 300
        wait_until(lambda: statuses(gateway).get(ill.url) == "healthy", gateway.output)
        assert [chat(gateway).status_code for _ in range(4)] == [200] * 4
        assert statuses(gateway)[ill.url] == "stalled"
        sent = len(ill.requests_of("/v1/chat/completions"))
        assert sent and len(ill.heads) >= 2
        wait_until(lambda: ill.requests_of("/v1/completions"), "it is not asked for a token")
        head, body = ill.requests_of("/v1/completions")[0]
        assert json.loads(body) == {"model": "m", "prompt": "1", "max_tokens": 1}
        assert all(b"\r\nauthorization: Bearer its own" in one for one in [head, *ill.heads])
        assert chat(gateway).status_code == 200 and statuses(gateway)[ill.url] == "stalled"
        ill.lives.set()
        wait_until(lambda: statuses(gateway)[ill.url] == "healthy", gateway.output)
        assert [chat(gateway).status_code for _ in range(2)] == [200] * 2
        assert len(ill.requests_of("/v1/chat/completions")) == sent + 1 and at_rest(gateway)
    finally:
        good.stop()


def test_a_stream_on_a_vllm_engine_that_hangs_ends_with_an_error_and_done(vllm, route):  # noqa: F811
    ill = vllm(first=HEAD + event(b"one"))
    gateway = route(ill.url)
    said = events(chat(gateway, stream=True))
    assert len(said) == 3 and "one" in said[0] and said[2] == "[DONE]"
    assert json.loads(said[1])["error"]["code"] == "worker_stalled"
    assert gateway.metric("portico_gateway_cut_streams_total") == 1 and at_rest(gateway)
    assert statuses(gateway)[ill.url] == "stalled"


def generates(worker):
    worker.tokens += 1


def prefills(worker):
    worker.usage += 1e-6


@pytest.mark.parametrize("moves", [generates, prefills])
def test_a_vllm_engine_that_is_slow_but_steps_is_left_alone(vllm, route, moves):  # noqa: F811
    """Within a long prefill, in parts, no token is counted: the share of the cache in use tells of it."""
    began = time.monotonic()
    slow = vllm(moves)
    gateway = route(slow.url)
    got, clients = in_background(gateway, 1)
    wait_beyond_the_limit()
    assert statuses(gateway)[slow.url] == "healthy" and len(slow.heads) > 2
    # Once a second at most, and every ten seconds for its load.
    assert len(slow.heads) <= 1.1 * (time.monotonic() - began) + 3
    slow.lives.set()
    for client in clients:
        client.join()
    assert got == [200] and "stalled" not in gateway.output()


def standing(_number):
    return PAGE.format(running=1, usage=0.5, prompts=3, tokens=8, seconds=1).encode()


def never(_number):
    threading.Event().wait(100)
    return b""


def broken(_number):
    raise OSError("the connection is closed")


PAGES = {
    "absent": lambda number: None,
    "disabled": lambda number: b"# TYPE python_info gauge\npython_info 1\n",
    "no step counted": lambda number: PAGE.format(running=1, usage=0, prompts=0, tokens=0, seconds=1).encode(),
    # Of an upload that takes long the engine has seen nothing, and a client that does not read keeps a finished answer.
    "no request": lambda number: PAGE.format(running=0, usage=0.5, prompts=3, tokens=8, seconds=1).encode(),
    "no request from the second on": lambda number: PAGE.format(running=int(number == 1), usage=0.5, prompts=3, tokens=8, seconds=1).encode(),
    "malformed": lambda number: b"vllm:generation_tokens_total{model=\"m} x\nvllm:generation_tokens_total NaN\n\0\xff{{{",
    "of one line": lambda number: b"vllm:generation_tokens_total" * 100000,
    "enormous": lambda number: standing(number) + b"# nothing\n" * 500000,
    "late": never,
    "closed": broken,
    "late from the second on": lambda number: standing(number) if number == 1 else never(number),
    "absent from the second on": lambda number: standing(number) if number == 1 else None,
}


def test_a_worker_whose_metrics_tell_nothing_is_judged_by_its_health(vllm, route):  # noqa: F811
    workers, counts = {}, {}
    for name, says in PAGES.items():
        worker = workers[name] = vllm()
        counts[name] = 0

        def page(_head, name=name, says=says):
            counts[name] += 1
            return says(counts[name])

        worker.page = page
    # The question for load would be the first otherwise.
    gateway = route(*[worker.url for worker in workers.values()],
                    flags=("--worker-stall-timeout-secs", str(LIMIT), "--policy", "round_robin", "--disable-load-monitoring"))
    got, clients = in_background(gateway, len(workers))
    wait_until(lambda: all(worker.requests_of("/v1/chat/completions") and counts[name] for name, worker in workers.items()),
               lambda: f"{counts} {gateway.output()}")
    wait_beyond_the_limit()
    listed = statuses(gateway)
    assert {name: listed[worker.url] for name, worker in workers.items()} == dict.fromkeys(workers, "healthy"), gateway.output()
    for worker in workers.values():
        worker.lives.set()
    for client in clients:
        client.join()
    assert got == [200] * len(workers) and "stalled" not in gateway.output()
    assert counts["enormous"] == 1, "what cannot be read is read again"


def test_a_vllm_worker_that_hung_and_was_started_again_is_used_again(vllm, route):  # noqa: F811
    ill = vllm()
    gateway = route(ill.url)
    assert chat(gateway).status_code >= 500 and statuses(gateway)[ill.url] == "stalled"
    RawWorker.stop(ill)  # without a last answer
    again = RawWorker(lambda connection, head, body: connection.sendall(OK), port=ill.port)
    try:
        wait_until(lambda: statuses(gateway)[ill.url] == "healthy", gateway.output)
        assert chat(gateway).status_code == 200
    finally:
        again.stop()


@pytest.mark.parametrize("refused", [("/v1/completions",), ("/v1/completions", "/v1/embeddings")])
def test_a_hanging_vllm_worker_is_asked_for_a_vector_or_judged_by_its_health_where_it_has_no_tokens(vllm, route, refused):  # noqa: F811
    ill = vllm()
    ill.refused = refused
    gateway = route(ill.url)
    assert chat(gateway).status_code >= 500
    if len(refused) == 1:
        wait_until(lambda: ill.requests_of("/v1/embeddings"), "it is not asked for a vector")
        assert json.loads(ill.requests_of("/v1/embeddings")[0][1]) == {"model": "m", "input": "1"}
        assert statuses(gateway)[ill.url] == "stalled" and len(ill.requests_of("/v1/completions")) == 1
        ill.lives.set()
    wait_until(lambda: statuses(gateway)[ill.url] == "healthy", gateway.output)


@pytest.mark.parametrize("pause, reading", [("/pause", "/is_paused"), ("/sleep?level=1", "/is_sleeping"), ("/pause_generation", "/health_generate")])
def test_a_worker_that_a_pause_has_not_reached_is_watched_as_before(vllm, route, pause, reading):  # noqa: F811
    """It counted as paused until it was told to go on: its engine could hang for ever."""
    ill, asked, answer_other = vllm(), [], None

    def answer(connection, head, body):
        path = head.split(b" ")[1].decode()
        if path == pause:
            return False  # lost, like the worker's connection
        if path == reading:
            asked.append(path)
            text = b'{"%s": false}' % reading[1:].encode()
            return connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        return answer_other(connection, head, body)

    def infers():
        asked.append("/health_generate")
        return 200 if reading == "/health_generate" and len(asked) == 1 else 404

    answer_other, ill.answer, ill.infers = ill.answer, answer, infers
    gateway = route(ill.url)
    answered = requests.post(gateway.url + pause, timeout=120)
    assert answered.status_code == 502
    wait_until(lambda: asked, gateway.output)
    wait_until(lambda: "is not paused" in gateway.output(), gateway.output)
    assert asked == [reading]
    assert chat(gateway).status_code >= 500
    assert statuses(gateway)[ill.url] == "stalled"


def test_a_worker_that_says_that_it_is_paused_is_not_asked_again(vllm, route):  # noqa: F811
    """The answer to the pause was lost, and not the pause."""
    paused, asked = vllm(), []
    hangs = paused.answer

    def answer(connection, head, body):
        path = head.split(b" ")[1]
        if path == b"/pause":
            return False
        if path == b"/is_paused":
            asked.append(path)
            return connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"is_paused":true}')
        return hangs(connection, head, body)

    paused.answer = answer
    gateway = route(paused.url)
    assert requests.post(gateway.url + "/pause", timeout=120).status_code == 502
    wait_until(lambda: asked, gateway.output)
    got, clients = in_background(gateway, 1)
    wait_beyond_the_limit()
    assert statuses(gateway)[paused.url] == "healthy" and len(asked) == 1
    paused.lives.set()
    clients[0].join()
    assert got == [200]
