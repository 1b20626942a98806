"""SGLang's control routes, rids and pauses, as its clients use them."""
import concurrent.futures
import json
import threading

import pytest
import requests

LONG = {"max_new_tokens": 400, "ignore_eos": True, "temperature": 0}
PROMPT = "Count from one to forty: one two three"
# Longer than any test takes to end it.
ENDLESS = {**LONG, "max_new_tokens": 1900}


def post(server, path, body=None, **keywords):
    return requests.post(server.url + path, json=body, timeout=60, **keywords)


def pause(server, mode):
    answer = post(server, "/pause_generation", {"mode": mode})
    assert answer.status_code == 200 and answer.json()["status"] == "ok", answer.text


def go_on(server):
    assert post(server, "/continue_generation", {}).status_code == 200


def load(server):
    return requests.get(server.url + "/get_load", timeout=60).json()[0]


class Stream:
    """A streamed /generate on a thread: its events as they come."""

    def __init__(self, server, **body):
        self.events = []
        self.some = threading.Event()
        self.answer = post(server, "/generate", {"stream": True, **body}, stream=True)
        assert self.answer.status_code == 200, self.answer.text
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.answer.iter_lines():
            if line.startswith(b"data: {"):
                self.events.append(json.loads(line[6:]))
                if len(self.events) >= 3:
                    self.some.set()

    def last(self):
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.events[-1]


@pytest.fixture(params=["mock", "demo"])
def server(request, start):
    """A server of its own: a pause is everybody's."""
    flags = ["--engine", "mock", "--mock-itl-ms", "2"] if request.param == "mock" else []
    return start(*flags)


def test_an_active_rid_is_refused_on_every_route_and_free_afterwards(mock):
    stream = Stream(mock, text="one two three", rid="mine", sampling_params=ENDLESS)
    assert stream.some.wait(60)
    for path, body in [("/generate", {"text": "a", "rid": "mine"}),
                       ("/generate", {"text": ["a", "b"], "rid": ["other", "mine"]}),
                       ("/v1/completions", {"model": "demo", "prompt": "a", "rid": "mine"}),
                       ("/v1/chat/completions",
                        {"messages": [{"role": "user", "content": "a"}], "rid": "mine"})]:
        refused = post(mock, path, body)
        assert refused.status_code == 400, refused.text
        assert refused.json()["error"]["param"] == "rid"
    assert stream.last()["meta_info"]["finish_reason"]["type"] == "length"
    short = {"text": "a", "sampling_params": {"max_new_tokens": 1}}
    assert post(mock, "/generate", {**short, "rid": "mine"}).status_code == 200
    assert post(mock, "/generate", {**short, "rid": "other"}).status_code == 200


def test_a_rid_is_free_again_for_the_next_request_of_the_same_client(mock):
    for _ in range(50):
        body = {"text": "a", "rid": "again and again", "sampling_params": {"max_new_tokens": 1}}
        assert post(mock, "/generate", body).status_code == 200


def test_in_place_streams_freeze_and_go_on_with_the_same_text(server):
    whole = post(server, "/generate", {"text": PROMPT, "sampling_params": LONG}).json()
    stream = Stream(server, text=PROMPT, sampling_params=LONG)
    assert stream.some.wait(60)
    pause(server, "in_place")
    assert load(server)["is_pause"] is True
    assert requests.get(server.url + "/health", timeout=60).status_code == 200
    assert requests.get(server.url + "/health_generate", timeout=60).status_code == 200
    assert requests.get(server.url + "/get_server_info", timeout=60).json()["is_pause"] is True
    go_on(server)
    assert load(server)["is_pause"] is False
    assert stream.last()["text"] == whole["text"]
    assert stream.last()["meta_info"]["finish_reason"] == {"type": "length", "length": 400}


def test_retracted_requests_hold_no_cells_and_go_on_with_the_same_text(server):
    whole = post(server, "/generate", {"text": PROMPT, "sampling_params": LONG}).json()
    stream = Stream(server, text=PROMPT, sampling_params=LONG)
    assert stream.some.wait(60)
    pause(server, "retract")
    while load(server)["num_used_tokens"] > 0:
        pass
    now = load(server)
    assert (now["num_running_reqs"], now["num_waiting_reqs"]) == (0, 1)
    assert post(server, "/flush_cache").status_code == 200
    go_on(server)
    assert stream.last()["text"] == whole["text"]


def test_mode_abort_ends_running_streams_and_new_ones_wait(server):
    stream = Stream(server, text=PROMPT, sampling_params=ENDLESS)
    assert stream.some.wait(60)
    pause(server, "abort")
    reason = stream.last()["meta_info"]["finish_reason"]
    assert reason == {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(post, server, "/generate",
                              {"text": "one", "sampling_params": {"max_new_tokens": 2, "ignore_eos": True}})
        while load(server)["num_waiting_reqs"] == 0:
            pass
        assert not waiting.done()
        go_on(server)
        assert waiting.result().json()["meta_info"]["completion_tokens"] == 2


def test_a_client_that_leaves_a_paused_server_frees_its_cells_and_its_rid(server):
    answer = post(server, "/generate", {"text": PROMPT, "stream": True, "rid": "gone", "sampling_params": ENDLESS},
                  stream=True)
    lines = answer.iter_lines()  # whose end would close the connection
    next(lines)
    pause(server, "in_place")
    assert post(server, "/generate", {"text": "a", "rid": "gone"}).status_code == 400
    answer.close()
    server.settle()
    assert load(server)["num_used_tokens"] == 0
    go_on(server)
    again = post(server, "/generate", {"text": "a", "rid": "gone", "sampling_params": {"max_new_tokens": 1}})
    assert again.status_code == 200


@pytest.mark.parametrize("body", [{"mode": ""}, {"mode": "stop"}, {"mode": 7}])
def test_an_unknown_pause_mode_is_refused_by_name(mock, body):
    answer = post(mock, "/pause_generation", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "mode"
    assert load(mock)["is_pause"] is False


def test_loads_have_sglangs_fields(demo):
    body = requests.get(demo.url + "/v1/loads", timeout=60).json()
    assert body["dp_rank_count"] == 1 and body["aggregate"]["total_reqs"] == 0
    rank = body["loads"][0]
    assert rank["max_total_num_tokens"] > 0 and rank["memory"]["kv_cache_gb"] > 0 and rank["memory"]["weight_gb"] > 0
    assert "memory" not in requests.get(demo.url + "/v1/loads?include=core", timeout=60).json()["loads"][0]
    assert requests.get(demo.url + "/get_load?dp_rank=7", timeout=60).json() == []
    old = requests.get(demo.url + "/get_load", timeout=60).json()[0]
    assert {"dp_rank", "num_reqs", "num_waiting_reqs", "num_tokens"} <= set(old)


@pytest.mark.parametrize("query, field", [("dp_rank=x", "dp_rank"), ("include=weather", "include")])
def test_a_bad_query_names_its_part(mock, query, field):
    answer = requests.get(mock.url + "/v1/loads?" + query, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field


def test_there_is_no_profiler_and_the_answer_says_so(mock):
    for path in ["/start_profile", "/stop_profile"]:
        answer = post(mock, path, {})
        assert answer.status_code == 400 and "profile" in answer.json()["error"]["message"]
