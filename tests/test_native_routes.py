"""SGLang's control routes, rids and pauses, as its clients use them."""
import concurrent.futures
import json
import math
import threading

import pytest
import requests

from conftest import ENDLESS, WAIT_SECONDS, wait_until

LONG = {"max_new_tokens": 400, "ignore_eos": True, "temperature": 0}
PROMPT = "Count from one to forty: one two three"
# As long as the demo model's context allows.
LONGEST = {**LONG, "max_new_tokens": 1900}


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
        self.thread.join(WAIT_SECONDS)
        assert not self.thread.is_alive()
        return self.events[-1]


def holds_one(server):
    now = load(server)
    return now["num_running_reqs"] + now["num_waiting_reqs"] == 1


def paused_stream(server, mode, sampling):
    """A stream that a pause has caught: one that was faster than the pause is followed by another."""
    while True:
        stream = Stream(server, text=PROMPT, sampling_params=sampling)
        assert stream.some.wait(WAIT_SECONDS)
        pause(server, mode)
        if mode == "abort" and stream.last()["meta_info"]["finish_reason"]["type"] == "abort":
            return stream
        if mode == "retract":
            wait_until(lambda: load(server)["num_used_tokens"] == 0, "a retracted stream holds cells")
        if mode != "abort" and holds_one(server):
            return stream
        go_on(server)
        stream.last()


@pytest.fixture(params=["mock", "demo"])
def server(request, start):
    """A server of its own: a pause is everybody's."""
    flags = ["--engine", "mock", "--mock-itl-ms", "2"] if request.param == "mock" else []
    return start(*flags)


def test_an_active_rid_is_refused_on_every_route_and_free_afterwards(patient):
    stream = Stream(patient, text="one two three", rid="mine", sampling_params={"max_new_tokens": ENDLESS})
    assert stream.some.wait(WAIT_SECONDS)
    for path, body in [("/generate", {"text": "a", "rid": "mine"}),
                       ("/generate", {"text": ["a", "b"], "rid": ["other", "mine"]}),
                       ("/v1/completions", {"model": "demo", "prompt": "a", "rid": "mine"}),
                       ("/v1/chat/completions",
                        {"messages": [{"role": "user", "content": "a"}], "rid": "mine"})]:
        refused = post(patient, path, body)
        assert refused.status_code == 400, refused.text
        assert refused.json()["error"]["param"] == "rid"
    assert post(patient, "/abort_request", {"rid": "mine"}).status_code == 200
    assert stream.last()["meta_info"]["finish_reason"]["type"] == "abort"
    short = {"text": "a", "sampling_params": {"max_new_tokens": 1}}
    assert post(patient, "/generate", {**short, "rid": "mine"}).status_code == 200
    assert post(patient, "/generate", {**short, "rid": "other"}).status_code == 200


def test_a_rid_is_free_again_for_the_next_request_of_the_same_client(mock):
    for _ in range(50):
        body = {"text": "a", "rid": "again and again", "sampling_params": {"max_new_tokens": 1}}
        assert post(mock, "/generate", body).status_code == 200


def test_in_place_streams_freeze_and_go_on_with_the_same_text(server):
    whole = post(server, "/generate", {"text": PROMPT, "sampling_params": LONG}).json()
    stream = paused_stream(server, "in_place", LONG)
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
    stream = paused_stream(server, "retract", LONG)
    now = load(server)
    assert (now["num_running_reqs"], now["num_waiting_reqs"]) == (0, 1)
    assert post(server, "/flush_cache").status_code == 200
    go_on(server)
    assert stream.last()["text"] == whole["text"]


def test_mode_abort_ends_running_streams_and_new_ones_wait(server):
    stream = paused_stream(server, "abort", LONGEST)
    reason = stream.last()["meta_info"]["finish_reason"]
    assert reason == {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(post, server, "/generate",
                              {"text": "one", "sampling_params": {"max_new_tokens": 2, "ignore_eos": True}})
        wait_until(lambda: load(server)["num_waiting_reqs"] == 1, "a new request does not wait")
        assert not waiting.done()
        go_on(server)
        assert waiting.result().json()["meta_info"]["completion_tokens"] == 2


def test_a_client_that_leaves_a_paused_server_frees_its_cells_and_its_rid(server):
    while True:
        answer = post(server, "/generate", {"text": PROMPT, "stream": True, "rid": "gone", "sampling_params": LONGEST},
                      stream=True)
        lines = answer.iter_lines()  # whose end would close the connection
        next(lines)
        pause(server, "in_place")
        if holds_one(server):
            break
        go_on(server)  # it was faster than the pause
    assert post(server, "/generate", {"text": "a", "rid": "gone"}).status_code == 400
    answer.close()
    wait_until(lambda: load(server)["num_used_tokens"] == 0, "its cells are still used")
    server.settle()
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
    demo.settle()
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


def test_the_engine_has_no_profiler_and_the_answer_says_so(mock):
    answer = post(mock, "/start_profile", {"num_steps": 5})
    assert answer.status_code == 400 and "profile" in answer.json()["error"]["message"]


def tokens(server, text):
    return post(server, "/tokenize", {"prompt": text}).json()["tokens"]


def score(server, **body):
    return post(server, "/v1/score", body)


# A prompt that is computed, and one that is read from the cache but for its last token: the last bits of bfloat16 differ
# between them, and a logit of a rare token by 0.02.
CACHED = 0.05
QUERY = "What is 7 plus 5?"
ITEMS = [" It is 12.", " It is 13.", " I do not know. Ask somebody else."]


def test_scores_are_the_models_probabilities_of_the_labels(demo):
    labels = [5, 17, 300, 5]
    answer = score(demo, model="demo", query=QUERY, items=ITEMS, label_token_ids=labels).json()
    assert answer["object"] == "scoring" and answer["model"] == "demo"
    assert answer["usage"]["prompt_tokens"] == sum(len(tokens(demo, QUERY + item)) for item in ITEMS)
    for item, row in zip(ITEMS, answer["scores"]):
        meta = post(demo, "/generate", {
            "text": QUERY + item, "return_logprob": True, "token_ids_logprob": labels, "top_logprobs_num": 20,
            "sampling_params": {"temperature": 0, "max_new_tokens": 1}}).json()["meta_info"]
        asked = meta["output_token_ids_logprobs"][0]
        assert [entry[1] for entry in asked] == labels
        assert row == pytest.approx([math.exp(entry[0]) for entry in asked], rel=CACHED)
        best = {entry[1]: entry[0] for entry in meta["output_top_logprobs"][0]}
        by_best = score(demo, query=QUERY + item, items=[""], label_token_ids=list(best)).json()["scores"][0]
        assert by_best == pytest.approx([math.exp(logprob) for logprob in best.values()], rel=CACHED)


def test_all_scores_sum_up_to_one_and_softmax_is_over_the_labels(demo):
    size = requests.get(demo.url + "/get_model_info", timeout=60).json()["vocab_size"]
    total = 0.0
    for start in range(0, size, 1024):
        labels = list(range(start, min(start + 1024, size)))
        total += sum(score(demo, query=QUERY, items=ITEMS[:1], label_token_ids=labels).json()["scores"][0])
    assert total == pytest.approx(1, abs=CACHED)
    plain = score(demo, query=QUERY, items=ITEMS, label_token_ids=[5, 17]).json()["scores"]
    soft = score(demo, query=QUERY, items=ITEMS, label_token_ids=[5, 17], apply_softmax=True).json()["scores"]
    for row, softened in zip(plain, soft):
        assert softened == pytest.approx([p / sum(row) for p in row], rel=CACHED)


def test_ids_score_as_their_texts_do_and_the_order_can_be_turned(demo):
    query, item = tokens(demo, QUERY), tokens(demo, ITEMS[0])
    turned = score(demo, query=query, items=[item], label_token_ids=[5, 17], item_first=True).json()["scores"]
    same = score(demo, query=item, items=[query], label_token_ids=[5, 17]).json()["scores"]
    assert turned[0] == pytest.approx(same[0], rel=CACHED)


def test_a_shared_query_is_computed_once(demo):
    query = "one two three four five six seven eight nine ten " * 10
    answer = score(demo, query=query, items=[str(i) for i in range(8)], label_token_ids=[5]).json()
    usage = answer["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] * 3 // 4


@pytest.mark.parametrize("change, field", [
    ({"query": None}, "query"), ({"query": 7}, "query"), ({"items": None}, "items"), ({"items": 7}, "items"),
    ({"items": ["a", 7]}, "items"), ({"items": [[1]]}, "items"), ({"label_token_ids": None}, "label_token_ids"),
    ({"label_token_ids": []}, "label_token_ids"), ({"label_token_ids": ["a"]}, "label_token_ids"),
    ({"label_token_ids": [99999999]}, "label_token_ids"), ({"apply_softmax": "yes"}, "apply_softmax"),
    ({"query": "", "items": ["a", ""]}, "items[1]"), ({"query": [99999999], "items": [[1]]}, "query"),
])
def test_a_bad_score_request_names_its_field(mock, change, field):
    answer = score(mock, **{"query": "a", "items": ["b"], "label_token_ids": [1], **change})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == field


def test_logprobs_by_id_stand_beside_those_of_prompt_and_output(demo):
    body = {"text": [QUERY, "one two"], "return_logprob": True, "logprob_start_len": 0,
            "token_ids_logprob": [[5, 17], None], "sampling_params": {"temperature": 0, "max_new_tokens": 2,
                                                                      "ignore_eos": True}}
    with_ids, without = [answer["meta_info"] for answer in post(demo, "/generate", body).json()]
    assert "input_token_ids_logprobs" not in without
    assert with_ids["input_token_ids_logprobs"][0] is None
    assert len(with_ids["input_token_ids_logprobs"]) == len(with_ids["input_token_logprobs"])
    assert [[entry[1] for entry in row] for row in with_ids["output_token_ids_logprobs"]] == [[5, 17]] * 2
    for chosen, row in zip(with_ids["input_token_logprobs"][1:], with_ids["input_token_ids_logprobs"][1:]):
        for logprob, token, _ in row:
            assert token != chosen[1] or logprob == chosen[0]
    refused = post(demo, "/generate", {"text": "a", "return_logprob": True, "token_ids_logprob": [99999999]})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "token_ids_logprob"


@pytest.mark.parametrize("path, body, bad, field", [
    ("/v1/embeddings", {"input": "a"}, {"input": []}, "input"),
    ("/v1/embeddings", {"input": [1, 2]}, {"input": [-1]}, "input"),
    ("/v1/classify", {"input": ["a", "b"]}, {}, "input"),
    ("/v1/rerank", {"query": "a", "documents": ["b"]}, {"query": "a"}, "documents"),
    ("/encode", {"text": "a"}, {"text": 7}, "text"),
    ("/classify", {"input_ids": [1]}, {"input_ids": [-1]}, "input_ids"),
])
def test_a_chat_model_says_what_it_is_when_it_is_to_embed(mock, path, body, bad, field):
    answer = post(mock, path, body)
    assert answer.status_code == 400
    assert "generates text" in answer.json()["error"]["message"]
    assert post(mock, path, bad).json()["error"]["param"] == field


def test_an_engine_without_weights_says_so(mock):
    answer = post(mock, "/update_weights_from_disk", {"model_path": "/nowhere"})
    assert answer.status_code == 400 and answer.json()["success"] is False
    assert "no weights" in answer.json()["message"]
    for body in [{}, {"model_path": 7}, {"model_path": ""}]:
        answer = post(mock, "/update_weights_from_disk", body)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "model_path"


def test_weights_can_be_replaced_while_requests_run(demo):
    folder = requests.get(demo.url + "/get_model_info", timeout=60).json()["model_path"]
    whole = post(demo, "/generate", {"text": PROMPT, "sampling_params": LONG}).json()
    stream = Stream(demo, text=PROMPT, sampling_params=LONG)
    assert stream.some.wait(WAIT_SECONDS)
    answer = post(demo, "/update_weights_from_disk", {"model_path": folder})
    assert answer.status_code == 200 and answer.json()["success"] is True
    assert stream.last()["text"] == whole["text"]
    refused = post(demo, "/update_weights_from_disk", {"model_path": "/nowhere"})
    assert refused.status_code == 400 and refused.json()["success"] is False
    again = post(demo, "/generate", {"text": PROMPT, "sampling_params": LONG}).json()
    assert again["text"] == whole["text"]
