"""Stages of Python: what they may be, what they are told, how they choose and stream, and what clients see of their faults."""
import pytest
import requests

from conftest import wait_until
from omni_stages import ENCODE, children, health, pipeline, python, say, steps, write  # noqa: F401 (pipeline is a fixture)
from test_omni import omni_command
from test_omni_recorded import WAV


def test_a_speech_tells_stages_of_python_how_to_sample(pipeline):
    server = pipeline(python("voice", "sampled"), ENCODE)
    assert steps(say(server, "x", seed=7, top_k=3, max_new_tokens=9, temperature=0.5)) == [7, 3, 9]
    assert steps(say(server, "x", seed=None)) == [0, 0, 0]
    for name, value in (("seed", "one"), ("top_k", 0), ("max_new_tokens", 0), ("temperature", -1), ("top_p", 2)):
        refused = say(server, "x", **{name: value})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == name, refused.text


def test_python_stages_are_functions_generators_and_classes(pipeline):
    server = pipeline(python("shout", "shout", "factory: {mark: ' now'}, stream_to: [same]"), python("same", "same", "stream_to: [voice]"),
                      python("voice", "spell"), ENCODE)
    assert len(children(server)) == 3
    assert steps(say(server, "one two three")) == [1, 2, 3, 4]


def test_python_stages_tell_clients_only_what_they_want_to(pipeline):
    server = pipeline(python("voice", "Hold"), ENCODE)
    refused = say(server, "refuse")
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "input"
    assert "does not say that" in refused.json()["error"]["message"]
    crashed = say(server, "crash")
    assert crashed.status_code == 500 and "secret" not in crashed.text
    wait_until(lambda: "RuntimeError: a secret" in server.output(), "its traceback is not in the log")
    voice = f"pid{children(server)[0]}"
    assert voice in requests.get(server.url + "/v1/audio/voices", timeout=60).json()["voices"]


def test_functions_of_python_choose_project_and_merge(pipeline):
    functions = "route_fn: stages_for_test.side, project_payload: {left: stages_for_test.loud}"
    server = pipeline(python("think", "ask", f"next: [left, right], {functions}"),
                      python("left", "mark", "factory: {mark: L}, next: join"), python("right", "mark", "factory: {mark: R}, stream_to: join"),
                      python("join", "same", "wait_for: [left, right], merge_fn: stages_for_test.joined, terminal: true"), head="name: talk\n")

    def said(content):
        body = {"model": "talk", "messages": [{"role": "user", "content": content}]}
        return requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    for content, answer in {"left a": "left: L(LEFT A)", "right b": "right: R(right b)", "both c": "left: L(BOTH C) | right: R(both c)",
                            "none d": ""}.items():
        told = said(content)
        assert told.status_code == 200, told.text
        assert told.json()["choices"][0]["message"]["content"] == answer
    wrong = said("wrong e")
    assert wrong.status_code == 500 and "nobody" not in wrong.text
    assert health(server).text == "ok\n"


def talk(server, content):
    body = {"model": "talk", "messages": [{"role": "user", "content": content}]}
    return requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)


def said(server, content):
    answer = talk(server, content)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


def test_a_function_of_python_tells_which_stages_a_request_waits_for(pipeline):
    server = pipeline(python("ask", "ask", "next: [left, right, gone], route_fn: stages_for_test.gone"), python("left", "mark", "factory: {mark: L}, next: join"),
                      python("right", "stuck_unless_both", "factory: {mark: R}, next: join"), python("gone", "same", "next: join"),
                      python("join", "same", "wait_for: [left, right, gone], wait_for_fn: stages_for_test.wanted, "
                             "merge_fn: stages_for_test.joined, terminal: true"), head="name: talk\n")
    assert said(server, "a") == "left: L(a)"  # the other one never ends
    assert said(server, "both b") == "left: L(both b) | right: R(both b)"
    for content in ("both unsure", "both wrong", "both empty", "both absent"):
        answer = talk(server, content)
        assert answer.status_code == 500 and "join" in answer.text and "nobody" not in answer.text, content
    assert health(server).text == "ok\n"


def test_a_stage_that_is_not_told_of_the_end_of_a_stream_does_not_run(pipeline):
    functions = ("stream_done_to_fn: stages_for_test.by_first_word, "
                 "project_payload: {left: stages_for_test.for_left, right: stages_for_test.for_right}")
    server = pipeline(python("think", "ask", f"stream_to: [left, right], {functions}"),
                      python("left", "marked_to_the_end", "factory: {mark: L}, terminal: true"),
                      python("right", "marked_to_the_end", "factory: {mark: R}, terminal: true"), head="name: talk\n")
    assert said(server, "left a") == "L(left a)L."
    assert said(server, "right b") == "R(right b)R."
    assert sorted(said(server, "left and right")) == sorted("L(left and right)L.R(left and right)R.")


@pytest.mark.parametrize("early", [False, True])
def test_a_stream_waits_for_the_payload_unless_it_is_accepted_before(pipeline, tmp_path, early):
    marker = tmp_path / "streamed" if early else ""
    last = f"factory: {{marker: '{marker}'}}, terminal: true" + (", can_accept_stream_before_payload: true" if early else "")
    server = pipeline(python("ask", "ask", "stream_to: [payload, bits]"), python("payload", "after", f"factory: {{marker: '{marker}'}}, next: last"),
                      python("bits", "same", "stream_to: last"), python("last", "by_source", last), head="name: talk\n")
    assert said(server, "a") == ("bits:a payload:whole " if early else "payload:whole bits:a ")


def test_a_stage_streams_back_to_one_before_it(pipeline):
    functions = "project_payload: {guess: stages_for_test.for_guess, reply: stages_for_test.for_reply}"
    server = pipeline(python("talk", "talk_with_a_guesser", f"next: reply, stream_to: guess, {functions}"),
                      python("guess", "guess", "stream_to: talk"), python("reply", "same", "terminal: true"), head="name: talk\n")
    for _ in range(3):
        assert said(server, "one two three") == "['one!', 'one!!', 'one!!!'] ['']"
    # One that dies ends the request, and is there for the next.
    answer = talk(server, "die")
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "stage_died" and "guess" in answer.text
    wait_until(lambda: talk(server, "one").status_code == 200, "the stage has not come back")


def test_a_function_that_never_ends_by_itself_is_not_streamed_back_to(tmp_path):
    stages = [python("talk", "same", "next: reply, stream_to: guess"), python("guess", "guess", "stream_to: talk"), python("reply", "same", "terminal: true")]
    refused = omni_command("check", str(write(tmp_path / "p.yaml", *stages)))
    assert refused.returncode == 1 and "`guess` streams back to `talk`" in refused.stderr


def test_a_part_may_be_kept_from_a_stage(pipeline):
    server = pipeline(python("say", "spell", "stream_to: [encode, rest], project_payload: {rest: stages_for_test.nothing}"), ENCODE,
                      python("rest", "same", "terminal: true"))
    assert steps(say(server, "a b")) == [1, 2]


def test_a_request_ends_however_its_stage_does(pipeline):
    # sys.exit() ended the request's thread alone: the client waited until its deadline. So did what is said of a
    # StageError and cannot be sent; and one with code 0 was a speech without sound.
    server = pipeline(python("voice", "leave"), ENCODE)
    for text, message in {"leave": "stage `voice` failed", "odd": "an odd ?", "good": "it is good"}.items():
        answer = say(server, text)
        assert answer.status_code == 500 and answer.json()["error"]["message"] == message, answer.text
    assert len(say(server, "fine").content) == 960
    assert server.metric("portico_stage_process_restarts_total") == 0


def test_a_function_of_an_edge_that_leaves_fails_its_request(pipeline):
    server = pipeline(python("think", "ask", "next: [left, right]"), python("left", "same", "next: join"), python("right", "same", "next: join"),
                      python("join", "same", "wait_for: [left, right], merge_fn: stages_for_test.leave_between, terminal: true"), head="name: talk\n")
    body = {"model": "talk", "messages": [{"role": "user", "content": "a"}]}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 500 and "join" in answer.json()["error"]["message"], answer.text


def test_a_single_voice_needs_no_list(pipeline):
    server = pipeline(python("voice", "leave"), ENCODE)
    assert requests.get(server.url + "/v1/audio/voices", timeout=60).json()["voices"] == ["anna"]


def test_a_part_that_a_stage_has_made_wrongly_fails_its_request_alone(pipeline):
    # The pipeline ended the process, with all its requests and models, and the log did not name what was wrong.
    server = pipeline(python("voice", "mismade"), ENCODE)
    for text in "rate rates negative bytes floats clip reason tokens index shape dtype time seconds".split():
        answer = say(server, text)
        assert answer.status_code == 500 and answer.json()["error"]["message"] == "stage `voice` failed", (text, answer.text)
    wait_until(lambda: "sample_rate must be an integer from 1 to 1000000, got 24000.5" in server.output(), server.output)
    assert steps(say(server, "fine")) == [7]
    assert server.metric("portico_stage_process_restarts_total") == 0


def test_what_a_stage_hears_of_a_sound_that_is_not_there_fails_its_request_alone(pipeline):
    # The server looked it up in the chat's sounds without a check, and ended.
    server = pipeline(python("hear", "mishear", "next: think"), "name: think, factory_path: portico.engine, terminal: true")
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    body = {"messages": [{"role": "user", "content": [sound]}]}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 500 and "audio 8 of a chat with 1" in answer.json()["error"]["message"], answer.text
    assert health(server).status_code == 200


def test_what_a_pipeline_does_not_do_is_the_fault_of_the_request(pipeline):
    # It was a 500.
    server = pipeline("name: think, factory_path: portico.engine, terminal: true")
    answer = say(server, "hello")
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "input", answer.text
    answer = requests.post(server.url + "/v1/audio/transcriptions", files={"file": ("a.wav", b"RIFF")}, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "file", answer.text


def test_what_a_stage_says_of_the_text_of_a_chat_names_the_messages(pipeline):
    # It named `audio`, which such a chat does not have.
    server = pipeline(python("think", "complain", "terminal: true"), head="name: talk\n")
    body = {"model": "talk", "messages": [{"role": "user", "content": "a"}]}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "messages", answer.text
    answer = requests.post(server.url + "/v1/chat/completions", json={**body, "modalities": ["text", "audio"]}, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "audio", answer.text


def test_a_pipeline_without_a_model_is_served_alone_by_serve_too(start, tmp_path):
    # The demo model was loaded beside it.
    server = start("--pipeline", str(write(tmp_path / "p.yaml", python("think", "ask", "terminal: true"), head="name: talk\n")))
    models = requests.get(server.url + "/v1/models", timeout=60).json()["data"]
    assert [model["id"] for model in models] == ["talk"]
    body = {"messages": [{"role": "user", "content": "hello"}]}
    answer = requests.post(server.url + "/v1/chat/completions", json=body, timeout=60)
    assert answer.json()["choices"][0]["message"]["content"] == "hello", answer.text


def test_a_voice_whose_rate_is_far_too_low_fails_its_request(pipeline):
    # Kilohertz instead of hertz: a second of sound became 17 minutes, in memory.
    server = pipeline(python("voice", "kilohertz"), ENCODE)
    answer = say(server, "hello")
    assert answer.status_code == 500 and "24 samples a second" in answer.json()["error"]["message"], answer.text


def test_a_transcription_tells_stages_of_python_its_temperature(pipeline):
    """It was dropped."""
    server = pipeline("name: decode, factory_path: portico.decode, stream_to: [ears]", python("ears", "hears_at", "terminal: true"))
    for told, meant in (("0.25", 0.25), (".5", 0.5), ("1.", 1), ("+0.5", 0.5)):  # those that are no JSON were refused
        answer = requests.post(server.url + "/v1/audio/transcriptions", files={"file": ("a.wav", WAV)}, data={"temperature": told}, timeout=60)
        assert answer.status_code == 200 and float(answer.json()["text"].removeprefix("heard at ")) == meant, (told, answer.text)
