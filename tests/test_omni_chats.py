"""Chats with sound: what their messages may hold."""
import base64
import json

import pytest
import requests

from test_omni import chat, needs_speech, omni, say  # noqa: F401 (omni is a fixture)


def clip(sound, **fields):
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(sound).decode(), **fields}}


@needs_speech
def test_the_format_of_a_sound_is_told_and_true(omni):
    """Any value that is no text counted as wav, and the bytes were not looked at."""
    question = say(omni, "What is the capital of Japan?", voice="kal16").content
    for fields in [{}, {"format": None}, {"format": 5}, {"format": "smell"}, {"format": "mp3"}, {"format": "ogg"}]:
        answer = chat(omni, [clip(question, **fields)])
        assert answer.status_code == 400, fields
        error = answer.json()["error"]
        assert error["param"] == "messages" and "messages[0].content[0]: input_audio.format" in error["message"], error
    for name in ["mp3", "flac", "opus"]:
        sound = say(omni, "What is the capital of Japan?", voice="kal16", response_format=name).content
        answer = chat(omni, [clip(sound, format=name)], modalities=["text"], audio=None)
        assert answer.status_code == 200, answer.text


@needs_speech
def test_a_request_id_names_chats_with_and_without_sound(omni):
    """It was ignored in chats of text alone."""
    for number, fields in enumerate([{}, {"modalities": None, "audio": None}, {"modalities": ["text"], "audio": None}]):
        answer = chat(omni, "hello", request_id=f"mine-{number}", max_tokens=4, **fields)
        assert answer.status_code == 200 and answer.json()["id"] == f"mine-{number}", answer.text
    wrong = chat(omni, "hello", request_id=5, modalities=None, audio=None)
    assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "request_id"


def follow_up(omni, message, **fields):
    messages = [{"role": "user", "content": "What is the capital of Japan?"}, message, {"role": "user", "content": "hello"}]
    return chat(omni, "", messages=messages, max_tokens=4, **fields)


@needs_speech
def test_an_answer_with_sound_comes_back_by_its_id(omni):
    """It was a 400: content must be a string."""
    whole = chat(omni, "What is the capital of Japan?").json()["choices"][0]["message"]
    streamed = chat(omni, "What is the capital of Japan?", stream=True)
    deltas = [json.loads(part[6:])["choices"][0]["delta"] for part in streamed.text.split("\n\n") if part.startswith("data: {")]
    assert "Tokyo" in whole["content"]
    text = {"modalities": None, "audio": None}
    told = follow_up(omni, {"role": "assistant", "content": whole["content"]}, **text).json()["usage"]["prompt_tokens"]
    for answer in (whole["audio"]["id"], next(delta["audio"]["id"] for delta in deltas if "audio" in delta)):
        for message in ({}, {"content": None}, {"content": whole["content"]}):
            back = {"role": "assistant", "audio": {"id": answer}, **message}
            assert follow_up(omni, back, **text).json()["usage"]["prompt_tokens"] == told
            aloud = follow_up(omni, back)
            assert aloud.status_code == 200 and aloud.json()["usage"]["prompt_tokens"] == told
    whole = {"role": "assistant", "content": None, "audio": {"id": "gone", "transcript": whole["content"]}}
    assert follow_up(omni, whole, **text).json()["usage"]["prompt_tokens"] == told
    for audio in ({"id": "audio-7"}, {"id": 7}, {}, "x"):
        for fields in ({}, text):
            answer = follow_up(omni, {"role": "assistant", "content": None, "audio": audio}, **fields)
            assert answer.status_code == 400 and "messages[1].audio.id" in answer.json()["error"]["message"], answer.text


@needs_speech
def test_a_form_has_one_file(omni):
    """The last one was heard."""
    sound = say(omni, "hello", voice="kal16").content
    answer = requests.post(omni.url + "/v1/audio/transcriptions", files=[("file", ("a.wav", sound)), ("file", ("b.wav", sound))], timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "file"


@needs_speech
def test_how_a_speech_ended_is_told_by_the_id_of_its_answer(omni):
    """That of a request with an X-Request-Id was not known."""
    for headers, fields, name in (({"x-request-id": "mine-25"}, {}, "mine-25"), ({}, {"request_id": "ours-25"}, "ours-25"),
                                  ({"x-request-id": "mine-26"}, {"request_id": "ours-26"}, "ours-26"), ({"x-request-id": "not a name"}, {}, None)):
        answer = requests.post(omni.url + "/v1/audio/speech", json={"input": "hello", "voice": "kal16", **fields}, headers=headers, timeout=60)
        assert answer.status_code == 200 and answer.headers["x-request-id"] == (name or answer.headers["x-request-id"])
        told = requests.get(omni.url + "/v1/audio/speech/" + answer.headers["x-request-id"], timeout=60)
        assert told.status_code == 200 and told.json()["finish_reason"] == "stop", (headers, fields, told.text)
