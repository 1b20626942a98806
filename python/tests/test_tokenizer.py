"""portico.Tokenizer as a user of the tokenizers package would use it."""
import copy
import json
import multiprocessing
import pickle
import threading

import numpy
import pytest

from portico import DecodeStream, Tokenizer

TEXT = "Hello wörld, 你好! " * 3


def test_an_encoding_tells_what_the_reference_s_does(tokenizer, demo):
    reference = pytest.importorskip("tokenizers").Tokenizer.from_file(demo + "/tokenizer.json")
    mine, theirs = tokenizer.encode(TEXT, "and a pair"), reference.encode(TEXT, "and a pair")
    for name in ("ids", "tokens", "offsets", "type_ids", "attention_mask", "special_tokens_mask", "word_ids", "sequence_ids",
                 "n_sequences"):
        assert getattr(mine, name) == getattr(theirs, name), name
    assert len(mine) == len(theirs)
    for i in range(0, 30):
        assert mine.char_to_token(i) == theirs.char_to_token(i) and mine.char_to_word(i) == theirs.char_to_word(i)
        assert mine.char_to_token(i, 1) == theirs.char_to_token(i, 1)
        assert mine.word_to_tokens(i) == theirs.word_to_tokens(i) and mine.word_to_chars(i) == theirs.word_to_chars(i)
        if i < len(mine):
            assert mine.token_to_chars(i) == theirs.token_to_chars(i) and mine.token_to_word(i) == theirs.token_to_word(i)
            assert mine.token_to_sequence(i) == theirs.token_to_sequence(i)


def test_ids_come_as_lists_or_arrays(tokenizer):
    ids = tokenizer.encode(TEXT).ids
    assert isinstance(ids, list)
    array = tokenizer.encode_ids(TEXT, as_numpy=True)
    assert array.dtype == numpy.int32 and array.tolist() == ids == tokenizer.encode_ids(TEXT)
    assert tokenizer.encode(TEXT).ids_numpy.tolist() == ids
    for kind in (list, tuple, numpy.array, lambda x: numpy.array(x, "int64"), lambda x: numpy.array(x, "uint32"), lambda x: map(int, x)):
        assert tokenizer.decode(kind(ids)) == TEXT


def test_ids_are_as_large_as_the_file_says():
    vocab = {"a": 0, "b": 70_000, "c": 300_000, "[UNK]": 1}
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"}
    tokenizer = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}))
    first = tokenizer.encode("a b c a c d").ids
    assert first == [0, 70_000, 300_000, 0, 300_000, 1] == tokenizer.encode_ids("a b c a c d")
    first[0] = 5
    assert tokenizer.encode("a").ids == [0]


def test_a_stream_takes_any_int(tokenizer):
    ids = tokenizer.encode("plain").ids
    for kind in (int, numpy.int32, numpy.int64, lambda i: [i]):
        stream = DecodeStream()
        assert "".join(stream.step(tokenizer, kind(i)) or "" for i in ids) + (stream.flush() or "") == "plain"
    with pytest.raises(TypeError):
        DecodeStream().step(tokenizer, 1.5)


def test_ids_that_shorten_their_list_end_it(tokenizer):
    class Emptying:
        def __index__(self):
            del ids[1:]
            return first

    first, *rest = tokenizer.encode("plain words").ids
    ids = [Emptying(), *rest * 1000]
    assert tokenizer.decode(ids) == tokenizer.decode([first])


def test_batches_keep_their_order(tokenizer):
    texts = [f"{i} {TEXT}" * (i % 7) for i in range(100)]
    encodings = tokenizer.encode_batch(texts)
    assert [e.ids for e in encodings] == [tokenizer.encode(t).ids for t in texts] == tokenizer.encode_batch_ids(texts)
    assert encodings[5].tokens == tokenizer.encode(texts[5]).tokens
    assert tokenizer.decode_batch([e.ids for e in encodings]) == texts
    assert tokenizer.encode_batch([("a", "b"), "c"])[0].ids == tokenizer.encode("a", "b").ids


def test_a_long_text_is_the_same_on_several_threads(tokenizer):
    text = (TEXT + "def f(x):\n    return x\n") * 20000
    assert tokenizer.encode_ids(text) == tokenizer.encode(text).ids


def test_other_threads_run_during_a_long_encode(tokenizer):
    text, ticks, done = TEXT * 200000, [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    tokenizer.encode(text)
    done.set()
    thread.join()
    assert ticks


def test_streams_join_to_the_decode(tokenizer):
    ids = tokenizer.encode(TEXT).ids
    stream = DecodeStream(skip_special_tokens=True)
    parts = [stream.step(tokenizer, i) for i in ids]
    assert None in parts  # a character of several tokens
    assert "".join(p or "" for p in parts) + (stream.flush() or "") == TEXT
    assert DecodeStream(ids=ids[:2]).step(tokenizer, ids[2:]) == tokenizer.decode(ids)[len(tokenizer.decode(ids[:2])):]


def test_the_vocabulary_is_that_of_the_file(tokenizer, demo):
    data = json.load(open(demo + "/tokenizer.json", encoding="utf-8"))
    expected = {**data["model"]["vocab"], **{t["content"]: t["id"] for t in data["added_tokens"]}}
    assert tokenizer.get_vocab() == expected and tokenizer.get_vocab_size() == len(expected)
    assert tokenizer.get_vocab(with_added_tokens=False) == data["model"]["vocab"]
    for token, number in list(expected.items())[:50]:
        assert tokenizer.token_to_id(token) == number and tokenizer.id_to_token(number) == token
    assert tokenizer.token_to_id("no such token") is None and tokenizer.id_to_token(10**6) is None


def test_truncation_and_padding_can_be_set(tokenizer):
    before = tokenizer.encode(TEXT)
    tokenizer.enable_truncation(5)
    tokenizer.enable_padding(length=8, pad_id=1, pad_token="p")
    assert tokenizer.truncation["max_length"] == 5 and tokenizer.padding["length"] == 8
    encoding = tokenizer.encode(TEXT)
    assert encoding.ids == before.ids[:5] + [1] * 3 and encoding.attention_mask == [1] * 5 + [0] * 3
    assert encoding.overflowing[0].ids[:5] == before.ids[5:10]
    tokenizer.no_truncation()
    tokenizer.no_padding()
    assert tokenizer.truncation is None and tokenizer.encode(TEXT).ids == before.ids == before.ids
    assert before.tokens == tokenizer.encode(TEXT).tokens  # as things stood when it was made


def test_a_tokenizer_can_be_pickled_and_copied(tokenizer, demo):
    tokenizer.enable_truncation(4)
    text = open(demo + "/tokenizer.json", encoding="utf-8").read()
    for one in (tokenizer, Tokenizer.from_str(text), Tokenizer.from_buffer(text.encode())):
        for made in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
            assert made.encode(TEXT).ids == one.encode(TEXT).ids


def encode_in_child(tokenizer, queue):
    queue.put(tokenizer.encode_batch_ids([TEXT] * 50)[0])


def test_a_forked_child_can_encode_batches(tokenizer):
    expected = tokenizer.encode_batch_ids([TEXT] * 50)[0]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=encode_in_child, args=(tokenizer, queue))
    child.start()
    assert queue.get(timeout=60) == expected
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.parametrize("call, error, words", [
    (lambda t: t.encode(3), TypeError, "must be a str, not int"),
    (lambda t: t.encode("\ud800"), UnicodeEncodeError, "surrogates"),
    (lambda t: t.encode(["a"], is_pretokenized=True), NotImplementedError, "is_pretokenized"),
    (lambda t: t.encode_batch([("a", "b", "c")]), TypeError, "pair of str"),
    (lambda t: t.decode([-1]), OverflowError, "token id"),
    (lambda t: t.decode(["a"]), TypeError, "integer"),
    (lambda t: Tokenizer.from_str("{"), ValueError, ""),
    (lambda t: Tokenizer.from_str("{}"), ValueError, "the file has no model"),
    (lambda t: Tokenizer.from_pretrained("no/such/folder"), FileNotFoundError, "no/such/folder"),
    (lambda t: t.enable_truncation(4, strategy="most"), ValueError, "strategy"),
    (lambda t: t.enable_padding(direction="up"), ValueError, "direction"),
    (lambda t: DecodeStream().step("t", 1), (TypeError, RuntimeError), ""),
])
def test_mistakes_are_exceptions_with_a_sentence(tokenizer, call, error, words):
    with pytest.raises(error, match=words):
        call(tokenizer)


def test_ids_that_no_token_has_are_left_out(tokenizer):
    ids = tokenizer.encode("ab").ids
    assert tokenizer.decode([2**31 + 5, *ids, 10**6]) == "ab" and tokenizer.decode([]) == ""
