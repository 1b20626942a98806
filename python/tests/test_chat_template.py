"""portico.ChatTemplate as a user of transformers would use it."""
import pickle
import threading

import numpy
import pytest

from portico import ChatTemplate

MESSAGES = [{"role": "user", "content": "Hi"}]
MASKED = "{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content }}{% endgeneration %};{% endfor %}"


def test_a_folder_s_template_renders_as_transformers_does(chat, demo):
    reference = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(demo)
    for options in ({"add_generation_prompt": True}, {}, {"continue_final_message": True}):
        assert chat.apply_chat_template(MESSAGES, tokenize=False, **options) == reference.apply_chat_template(MESSAGES, tokenize=False, **options)
        mine, theirs = chat.apply_chat_template(MESSAGES, **options), reference.apply_chat_template(MESSAGES, **options)
        assert mine["input_ids"] == list(theirs["input_ids"]) and mine["attention_mask"] == list(theirs["attention_mask"])


def test_batches_padding_and_arrays(chat):
    longer = MESSAGES + [{"role": "assistant", "content": "a b c d"}]
    texts = chat.apply_chat_template([MESSAGES, longer], tokenize=False)
    assert texts == [chat.render(MESSAGES), chat.render(longer)]
    rows = chat.apply_chat_template([MESSAGES, longer], padding=True, return_tensors="np")
    assert isinstance(rows["input_ids"], numpy.ndarray) and rows["input_ids"].shape == rows["attention_mask"].shape
    assert rows["attention_mask"][0].sum() == len(chat.apply_chat_template(MESSAGES, return_dict=False))
    assert len(chat.apply_chat_template(longer, truncation=True, max_length=5, return_dict=False)) == 5


def test_the_assistant_s_tokens_are_masked(chat):
    out = chat.apply_chat_template(MESSAGES, chat_template=MASKED, return_assistant_tokens_mask=True)
    text = [chat.tokenizer.decode([i]) for i, m in zip(out["input_ids"], out["assistant_masks"]) if m]
    assert "".join(text) == "Hi"
    assert chat.render_with_spans(MESSAGES, chat_template=MASKED) == ("user:Hi;", [(5, 7)])


def test_variables_tools_and_documents_reach_the_template():
    chat = ChatTemplate("{{ bos_token }}{{ messages|length }}{{ tools|tojson }}{{ documents|tojson }}{{ extra }}{{ x.a[0] }}", {"bos_token": "<s>"})
    text = chat.apply_chat_template(MESSAGES, tools=[{"name": "f"}], documents=[{"t": 1.5}], tokenize=False, extra=None, x={"a": (True,)})
    assert text == '<s>1[{"name": "f"}][{"t": 1.5}]NoneTrue'
    assert chat.special_tokens_map == {"bos_token": "<s>"} and list(chat.templates) == ["default"]


def test_ints_of_any_size_stay_ints():
    template = ChatTemplate("{{ messages[0].n }} {{ n | tojson }} {{ n + 1 }}")
    for n in (2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30):
        assert template.render([{"role": "user", "n": n}], variables={"n": n}) == f"{n} {n} {n + 1}"
    with pytest.raises(ValueError, match="digits"):
        template.render([{"role": "user", "n": 10**5000}])


def test_a_template_is_chosen_by_name():
    chat = ChatTemplate({"default": "d", "tool_use": "t", "rag": "r"})
    assert [chat.render(MESSAGES), chat.render(MESSAGES, tools=[{}]), chat.render(MESSAGES, chat_template="rag")] == ["d", "t", "r"]
    assert chat.render(MESSAGES, chat_template="{{ 1 + 1 }}") == "2"


def test_a_function_may_be_a_tool():
    pytest.importorskip("transformers")

    def weather(city: str):
        """Tells the weather.

        Args:
            city: where
        """

    assert "Tells the weather" in ChatTemplate("{{ tools|tojson }}").apply_chat_template(MESSAGES, tools=[weather], tokenize=False)


def test_threads_share_one_template(chat):
    expected, wrong = chat.render(MESSAGES), []

    def render():
        for _ in range(200):
            if chat.render(MESSAGES) != expected:
                wrong.append(1)

    threads = [threading.Thread(target=render) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_a_template_can_be_pickled(chat):
    made = pickle.loads(pickle.dumps(chat))
    assert made.apply_chat_template(MESSAGES) == chat.apply_chat_template(MESSAGES)


@pytest.mark.parametrize("call, error, words", [
    (lambda: ChatTemplate("{{ x | }}"), ValueError, "line 1"),
    (lambda: ChatTemplate("{{ raise_exception('roles must alternate') }}").render(MESSAGES), ValueError, "^roles must alternate$"),
    (lambda: ChatTemplate("{{ x.y }}").render(MESSAGES), ValueError, "undefined"),
    (lambda: ChatTemplate("x").render([]), ValueError, "empty conversation"),
    (lambda: ChatTemplate("x").render([{"role": object()}]), TypeError, "object"),
    (lambda: ChatTemplate("x").render([{1: 2}]), TypeError, "keys"),
    (lambda: ChatTemplate("x").apply_chat_template(MESSAGES), ValueError, "no tokenizer"),
    (lambda: ChatTemplate("{% for i in range(100000000) %}{% endfor %}").render(MESSAGES), (MemoryError, ValueError), ""),
    (lambda: ChatTemplate.from_pretrained("no/such/folder"), (FileNotFoundError, ValueError), ""),
])
def test_mistakes_are_exceptions_with_a_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()
