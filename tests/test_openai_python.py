"""The official openai package for Python, as its users call it."""
import openai
import pytest


@pytest.fixture(params=["mock", "demo"])
def client(request):
    server = request.getfixturevalue(request.param)
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


def test_a_whole_chat_answer_has_text_usage_and_a_finish_reason(client):
    answer = client.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "What is 7 plus 5?"}], max_tokens=24)
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_streamed_chat_answer_is_the_whole_answer_in_pieces(client):
    question = dict(model="demo", messages=[{"role": "user", "content": "What is 7 plus 5?"}], max_tokens=24,
                    temperature=0)
    whole = client.chat.completions.create(**question)
    chunks = list(client.chat.completions.create(**question, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    finishes = [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason]
    assert finishes == [whole.choices[0].finish_reason]
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_several_choices_with_logprobs(client):
    answer = client.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "Hello!"}], n=3, max_tokens=5, logprobs=True,
        top_logprobs=4, seed=7)
    assert sorted(c.index for c in answer.choices) == [0, 1, 2]
    for choice in answer.choices:
        for position in choice.logprobs.content:
            values = [t.logprob for t in position.top_logprobs]
            assert len(values) == 4 and values == sorted(values, reverse=True)
            assert position.logprob <= 0


def test_completions_take_lists_and_echo(client):
    answer = client.completions.create(model="demo", prompt=["One two", "Three four"], max_tokens=4, echo=True)
    assert [c.index for c in answer.choices] == [0, 1]
    assert answer.choices[0].text.startswith("One two")
    assert answer.choices[1].text.startswith("Three four")


def test_completions_stream(client):
    chunks = list(client.completions.create(model="demo", prompt="One two three", max_tokens=6, stream=True))
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")


def test_prompt_logprobs_come_with_echo_and_no_new_tokens(client):
    answer = client.completions.create(model="demo", prompt="One two three", max_tokens=0, echo=True, logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])
    assert "".join(logprobs.tokens) == "One two three"
    assert answer.usage.completion_tokens == 0


def test_models_are_listed(client):
    models = client.models.list().data
    assert models[0].id == "demo"
    assert client.models.retrieve("demo").id == "demo"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_an_error_names_the_field(client):
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model="demo", messages=[{"role": "user", "content": "x"}], temperature=-1)
    assert error.value.param == "temperature"
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="other", messages=[{"role": "user", "content": "x"}])
    assert error.value.code == "model_not_found" and error.value.param == "model"


def test_a_stream_may_be_left_early(client):
    stream = client.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "Count from 1 to 30"}], stream=True, max_tokens=200)
    for _, _ in zip(range(3), stream):
        pass
    stream.close()
