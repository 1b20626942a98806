"""The demo model over HTTP: long prompts up to the context's end, and sampling as clients use it."""
import requests

PREFILL_CHUNK = 512  # the default --chunked-prefill-size
COMPLETIONS = "/v1/completions"


def context_length(server):
    return requests.get(server.url + "/v1/models", timeout=60).json()["data"][0]["max_model_len"]


def tokens_of(server, messages):
    answer = requests.post(server.url + "/tokenize", json={"model": "demo", "messages": messages}, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()["count"]


def with_system(system, question="What is 7 plus 5?"):
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


def system_prompt(server, tokens):
    """A conversation of exactly so many tokens, most of them its system prompt's."""
    words = "You are a helpful assistant who answers in one short sentence."
    text = words
    while tokens_of(server, with_system(text + " " + words)) <= tokens:
        text += " " + words
    while tokens_of(server, with_system(text)) < tokens:
        text += " a"
    conversation = with_system(text)
    assert tokens_of(server, conversation) == tokens
    return conversation


def chat(server, messages, **fields):
    return requests.post(server.url + "/v1/chat/completions", json={"messages": messages, **fields}, timeout=300)


def test_a_system_prompt_longer_than_a_prefill_chunk_is_computed_once(demo):
    conversation = system_prompt(demo, 3 * PREFILL_CHUNK + 7)
    first = chat(demo, conversation, temperature=0, max_tokens=20).json()
    assert first["usage"]["prompt_tokens"] == 3 * PREFILL_CHUNK + 7
    assert first["choices"][0]["message"]["content"].strip()
    again = chat(demo, conversation, temperature=0, max_tokens=20).json()
    assert again["choices"][0]["message"] == first["choices"][0]["message"]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 3 * PREFILL_CHUNK + 6
    # Another question after the same system prompt shares nearly all of it.
    other = chat(demo, with_system(conversation[0]["content"], "Who are you?"), temperature=0, max_tokens=20).json()
    assert other["usage"]["prompt_tokens_details"]["cached_tokens"] >= 3 * PREFILL_CHUNK - 20


def test_a_prompt_that_leaves_room_for_one_token_gets_one(demo):
    context = context_length(demo)
    answer = chat(demo, system_prompt(demo, context - 1), temperature=0).json()
    assert answer["usage"] | {"prompt_tokens_details": None} == {
        "prompt_tokens": context - 1, "completion_tokens": 1, "total_tokens": context, "prompt_tokens_details": None,
        "reasoning_tokens": 0}
    assert answer["choices"][0]["finish_reason"] == "length"


def test_a_prompt_as_long_as_the_context_or_longer_is_refused_with_both_numbers(demo):
    context = context_length(demo)
    for tokens in (context, context + 1):
        answer = chat(demo, system_prompt(demo, tokens))
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["message"] == (
            f"The input ({tokens} tokens) is longer than the model's context length ({context} tokens).")
        assert error["param"] == "messages"
        ids = requests.post(demo.url + COMPLETIONS, json={"prompt": [5] * tokens}, timeout=60)
        assert ids.status_code == 400
        assert f"({tokens} tokens)" in ids.json()["error"]["message"]
    # Streams are refused before they begin.
    assert chat(demo, system_prompt(demo, context), stream=True).status_code == 400


def test_more_new_tokens_than_the_context_has_room_for_are_refused(demo):
    context = context_length(demo)
    fits = {"prompt": [5] * 100, "max_tokens": context - 100, "temperature": 0, "stop_token_ids": list(range(3072))}
    assert requests.post(demo.url + COMPLETIONS, json=fits, timeout=60).status_code == 200
    answer = requests.post(demo.url + COMPLETIONS, json=fits | {"max_tokens": context - 99}, timeout=60)
    assert answer.status_code == 400
    assert str(context) in answer.json()["error"]["message"]


QUESTIONS = ["Tell me a story", "What is 7 plus 5?", "Hello!", "Who are you?", "What is the capital of France?"]


def test_answers_drawn_at_the_default_temperature_are_text(demo):
    for question in QUESTIONS:
        for _ in range(3):
            answer = demo.chat(question, max_tokens=120).json()
            content = answer["choices"][0]["message"]["content"]
            assert content.strip(), answer
            assert "\ufffd" not in content
            assert "<|im" not in content
            assert answer["choices"][0]["finish_reason"] in ("stop", "length")


def test_a_seed_repeats_its_answer_and_other_seeds_give_others(demo):
    def drawn(seed, **fields):
        answer = demo.chat("Tell me a story", seed=seed, max_tokens=60, temperature=1.5, **fields).json()
        return [choice["message"]["content"] for choice in answer["choices"]]

    answers = [drawn(seed) for seed in range(6)]
    assert answers == [drawn(seed) for seed in range(6)]
    assert len({answer[0] for answer in answers}) > 1
    choices = drawn(3, n=4)
    assert choices == drawn(3, n=4)
    assert choices[0] == answers[3][0]
    assert len(set(choices)) > 1


def test_without_a_seed_answers_differ(demo):
    answers = {demo.chat("Tell me a story", max_tokens=60, temperature=1.5).json()["choices"][0]["message"]["content"]
               for _ in range(8)}
    assert len(answers) > 1
