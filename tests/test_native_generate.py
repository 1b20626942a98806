"""SGLang's POST /generate, as its clients use it."""
import concurrent.futures
import json

import pytest
import requests

from conftest import ENDLESS, wait_until


def generate(server, headers=None, **body):
    return requests.post(server.url + "/generate", json=body, headers=headers, timeout=60)


def events(server, headers=None, **body):
    with requests.post(server.url + "/generate", json={**body, "stream": True}, headers=headers, stream=True,
                       timeout=60) as answer:
        assert answer.status_code == 200, answer.text
        lines = [line[6:] for line in answer.iter_lines() if line.startswith(b"data: ")]
    assert lines.pop() == b"[DONE]"
    return [json.loads(line) for line in lines]


def tokens(server, text):
    return requests.post(server.url + "/tokenize", json={"prompt": text}, timeout=60).json()["tokens"]


def test_a_text_is_answered_with_text_ids_and_meta_info(mock):
    answer = generate(mock, text="What is 7 plus 5?", sampling_params={"max_new_tokens": 4}, rid="mine").json()
    assert answer["output_ids"] == tokens(mock, "What is 7 plus 5?")[:4]
    meta = answer["meta_info"]
    assert meta["id"] == "mine"
    assert meta["finish_reason"] == {"type": "length", "length": 4}
    assert meta["completion_tokens"] == 4 and meta["e2e_latency"] > 0


def test_ids_give_the_same_as_their_text(mock):
    ids = tokens(mock, "one two three")
    by_ids = generate(mock, input_ids=ids, sampling_params={"max_new_tokens": 6}).json()
    by_text = generate(mock, text="one two three", sampling_params={"max_new_tokens": 6}).json()
    assert by_ids["output_ids"] == by_text["output_ids"] and by_ids["text"] == by_text["text"]


def test_a_batch_is_answered_in_order_with_each_ones_own_parameters(mock):
    answers = generate(mock, text=["one two three four", "five six seven eight"], rid="r",
                       sampling_params=[{"max_new_tokens": 2}, {"max_new_tokens": 3}]).json()
    assert [a["meta_info"]["completion_tokens"] for a in answers] == [2, 3]
    assert [a["meta_info"]["id"] for a in answers] == ["r_0", "r_1"]
    assert answers[1]["output_ids"] == tokens(mock, "five six seven eight")[:3]


def test_n_choices_of_a_batch_repeat_the_whole_list(mock):
    answers = generate(mock, text=["one two", "three four"], sampling_params={"max_new_tokens": 1, "n": 2}).json()
    first, second = tokens(mock, "one two")[:1], tokens(mock, "three four")[:1]
    assert [a["output_ids"] for a in answers] == [first, second, first, second]


def test_streams_are_cumulative_unless_deltas_are_asked_for(mock):
    whole = generate(mock, text="one two three", sampling_params={"max_new_tokens": 5}).json()
    cumulative = events(mock, text="one two three", sampling_params={"max_new_tokens": 5})
    assert cumulative[-1]["text"] == whole["text"] and cumulative[-1]["output_ids"] == whole["output_ids"]
    assert [len(e["output_ids"]) for e in cumulative] == sorted(len(e["output_ids"]) for e in cumulative)
    deltas = events(mock, {"x-portico-stream": "delta"}, text="one two three", sampling_params={"max_new_tokens": 5})
    assert "".join(e["text"] for e in deltas) == whole["text"]
    assert sum((e["output_ids"] for e in deltas), []) == whole["output_ids"]
    assert deltas[-1]["meta_info"]["finish_reason"]["type"] == "length"
    assert all(e["meta_info"]["finish_reason"] is None for e in deltas[:-1])


def test_events_come_every_stream_interval_tokens_after_the_first(mock):
    deltas = events(mock, {"x-portico-stream": "delta"}, text="one two three",
                    sampling_params={"max_new_tokens": 8, "stream_interval": 3})
    assert [len(e["output_ids"]) for e in deltas] == [1, 3, 3, 1]
    cumulative = events(mock, text="one two three", sampling_params={"max_new_tokens": 8, "stream_interval": 3})
    assert [e["meta_info"]["completion_tokens"] for e in cumulative] == [1, 4, 7, 8]


def test_prompt_token_ids_come_back_where_they_are_asked_for(mock):
    body = {"text": ["one two", "three"], "return_prompt_token_ids": True, "sampling_params": {"max_new_tokens": 2}}
    answers = generate(mock, **body).json()
    assert [a["prompt_token_ids"] for a in answers] == [tokens(mock, "one two"), tokens(mock, "three")]
    assert "prompt_token_ids" not in generate(mock, text="one", sampling_params={"max_new_tokens": 1}).json()


def test_a_streamed_batch_says_which_answer_each_event_is_of(mock):
    texts = {0: "", 1: ""}
    for event in events(mock, {"x-portico-stream": "delta"}, text=["one two", "three four"],
                        sampling_params={"max_new_tokens": 4}):
        texts[event["index"]] += event["text"]
    whole = generate(mock, text=["one two", "three four"], sampling_params={"max_new_tokens": 4}).json()
    assert [texts[0], texts[1]] == [a["text"] for a in whole]


def test_logprobs_of_prompt_and_output_have_sglangs_shape(demo):
    ids = tokens(demo, "What is 7 plus 5?")
    meta = generate(demo, text="What is 7 plus 5?", return_logprob=True, logprob_start_len=0, top_logprobs_num=2,
                    return_text_in_logprobs=True,
                    sampling_params={"temperature": 0, "max_new_tokens": 3, "ignore_eos": True}).json()["meta_info"]
    assert [entry[1] for entry in meta["input_token_logprobs"]] == ids
    assert meta["input_token_logprobs"][0][0] is None
    assert all(entry[0] <= 0 for entry in meta["input_token_logprobs"][1:])
    assert meta["output_token_logprobs_length"] == len(meta["output_token_logprobs"]) == 3
    assert all(len(top) == 2 and top[0][0] >= top[1][0] for top in meta["output_top_logprobs"])
    assert isinstance(meta["output_token_logprobs"][0][2], str)
    later = generate(demo, text="What is 7 plus 5?", return_logprob=True, logprob_start_len=2,
                     sampling_params={"temperature": 0, "max_new_tokens": 1}).json()["meta_info"]
    assert [entry[1] for entry in later["input_token_logprobs"]] == ids[2:]
    # The later prompt starts from cached tokens, and the last bits of bfloat16 differ.
    assert later["input_token_logprobs"][1][0] == pytest.approx(meta["input_token_logprobs"][3][0], abs=0.02)


def test_greedy_answers_equal_those_of_completions(demo):
    native = generate(demo, text="What is 7 plus 5?", sampling_params={"temperature": 0, "max_new_tokens": 8}).json()
    openai = requests.post(demo.url + "/v1/completions", timeout=60, json={
        "model": "demo", "prompt": "What is 7 plus 5?", "temperature": 0, "max_tokens": 8}).json()
    assert native["text"] == openai["choices"][0]["text"]


@pytest.mark.parametrize("body, field", [
    ({}, "text"),
    ({"text": 7}, "text"),
    ({"text": ""}, "text"),
    ({"text": ["one", ""]}, "text[1]"),
    ({"text": "a", "input_ids": [1]}, "text"),
    ({"input_ids": [99999999]}, "input_ids"),
    ({"input_ids": [[1], [99999999]]}, "input_ids[1]"),
    ({"text": "a", "sampling_params": {"max_tokens": 3}}, "max_tokens"),
    ({"text": "a", "sampling_params": {"temperature": -1}}, "temperature"),
    ({"text": "a", "sampling_params": {"stop_token_ids": [99999999]}}, "stop_token_ids"),
    ({"text": ["a", "b"], "sampling_params": [{"n": 1}, {"n": 2}]}, "sampling_params"),
    ({"text": ["a", "b"], "rid": ["x", "x"]}, "rid"),
    ({"text": "a", "return_logprob": True, "logprob_start_len": 99}, "logprob_start_len"),
    ({"text": "a", "image_data": "x"}, "image_data"),
])
def test_bad_input_is_refused_by_field(mock, body, field):
    answer = generate(mock, **body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == field


def test_an_unknown_form_of_stream_is_refused(mock):
    assert generate(mock, {"x-portico-stream": "both"}, text="a").status_code == 400


def test_one_prompt_of_a_batch_can_be_aborted(patient):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        batch = pool.submit(generate, patient, text=["one two", "three four"], rid=["x", "y"],
                            sampling_params=[{"max_new_tokens": ENDLESS}, {"max_new_tokens": 20}])

        def aborted():
            # Without effect as long as the batch has not come.
            assert requests.post(patient.url + "/abort_request", json={"rid": "x"}, timeout=60).status_code == 200
            return batch.done()

        wait_until(aborted, "the batch goes on")
        first, second = batch.result().json()
    assert first["meta_info"]["finish_reason"]["type"] == "abort"
    assert second["meta_info"]["finish_reason"] == {"type": "length", "length": 20}


def test_a_client_that_leaves_ends_all_prompts(patient):
    patient.settle()
    aborted = patient.metric("portico_requests_aborted_total")
    body = {"text": ["one", "two"] * 8, "stream": True, "sampling_params": {"max_new_tokens": ENDLESS}}
    answer = requests.post(patient.url + "/generate", json=body, stream=True, timeout=60)
    lines = answer.iter_lines()  # whose end would close the connection
    next(lines)
    answer.close()
    patient.wait_for("portico_requests_aborted_total", aborted + 16)
    patient.settle()
