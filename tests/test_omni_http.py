"""portico.http: OpenAI-compatible servers as thinker, ears and voice; tools in chats with audio and in realtime sessions."""
import asyncio
import base64
import http.server
import io
import json
import random
import re
import struct
import threading
import wave

import pytest
import requests

from conftest import Server
from test_omni_recorded import PIPELINE
from test_omni_sockets import ask, connect, tell, until

CALL = {"id": "call_7", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}


class Upstream(http.server.BaseHTTPRequestHandler):
    """Calls a tool until it has been told what came of it; `asked` has the bodies."""
    protocol_version = "HTTP/1.1"
    asked = []
    keys = []
    half_read = threading.Event()

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body)
        self.keys.append(self.headers.get("authorization"))
        last = body["messages"][-1]
        text = last["content"] if isinstance(last["content"], str) else json.dumps(last["content"])
        if "no-events" in text:
            return self.answer(200, "application/json", "{}")
        if "endless" in text:
            return self.answer(200, "text/event-stream", "data: " + "x" * (5 << 20))
        if "refuse-me" in text:
            return self.answer(400, "application/json", json.dumps({"error": {"message": "this is too rude"}}))
        if "break-off" in text:
            self.close_connection = True
            self.answer(200, "text/event-stream", self.event({"content": "half "}), length=10000)
            self.wfile.flush()
            self.half_read.wait(60)
            return None
        if last["role"] == "tool":
            deltas = [({"content": "It is "}, None), ({"content": f"{text} there."}, None), ({}, "stop")]
        elif body.get("tools") and body.get("tool_choice") != "none":
            function = CALL["function"]
            deltas = [({"tool_calls": [{"index": 0, "id": CALL["id"], "type": "function", "function": {"name": function["name"], "arguments": ""}}]}, None),
                      ({"tool_calls": [{"index": 0, "function": {"arguments": function["arguments"][:7]}}]}, None),
                      ({"tool_calls": [{"index": 0, "function": {"arguments": function["arguments"][7:]}}]}, None), ({}, "tool_calls")]
        else:
            deltas = [({"content": "You said: "}, None), ({"content": text}, None), ({}, "stop")]
        out = "".join(self.event(delta, reason) for delta, reason in deltas)
        usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}})
        return self.answer(200, "text/event-stream", out + f"data: {usage}\n\ndata: [DONE]\n\n")

    @staticmethod
    def event(delta, reason=None):
        return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': reason}]})}\n\n"

    def answer(self, status, kind, text, length=None):
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(length or len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def upstream():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()


THINKER = """name: talker
stages:
  - {{name: think, factory_path: portico.http, factory: {{url: "{url}", role: think, model: big}}, stall_timeout_s: 20, stream_to: [reply, voice]}}
  - {{name: reply, factory_path: portico.pass, terminal: true}}
  - {{name: voice, factory_path: portico.mock, factory: {{text: false, chunks: 2}}, stream_to: [encode]}}
  - {{name: encode, factory_path: portico.encode, terminal: true}}
"""


@pytest.fixture(scope="module")
def thinker(upstream, tmp_path_factory):
    path = tmp_path_factory.mktemp("omni") / "talker.yaml"
    path.write_text(THINKER.format(url=upstream))
    server = Server(command=("omni", "serve", str(path)))
    yield server
    server.stop()


def chat(server, content, **fields):
    return requests.post(server.url + "/v1/chat/completions", json={"messages": [{"role": "user", "content": content}], **fields}, timeout=60)


TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]


def test_an_upstream_thinks_and_a_stage_speaks(thinker):
    answer = chat(thinker, "hello", modalities=["text", "audio"], temperature=0.5, max_tokens=9, stop=["xx"],
                  stage_sampling={"think": {"top_p": 0.25, "temperature": 0.125}}).json()
    message = answer["choices"][0]["message"]
    assert message["content"] == message["audio"]["transcript"] == "You said: hello"
    assert base64.b64decode(message["audio"]["data"])[:4] == b"RIFF"
    assert answer["usage"] == {**answer["usage"], "prompt_tokens": 11, "completion_tokens": 4}
    asked = Upstream.asked[-1]
    assert asked["model"] == "big" and asked["stream"] is True and asked["max_tokens"] == 9
    assert (asked["temperature"], asked["top_p"], asked["stop"]) == (0.125, 0.25, ["xx"])


def test_tools_are_called_in_chats_with_audio_whole_and_streamed(thinker):
    whole = chat(thinker, "weather?", modalities=["text", "audio"], tools=TOOLS).json()["choices"][0]
    assert whole["finish_reason"] == "tool_calls"
    assert whole["message"]["tool_calls"] == [CALL]
    text = chat(thinker, "weather?", tools=TOOLS, stream=True).text
    deltas = [json.loads(part[6:])["choices"][0] for part in text.split("\n\n") if part.startswith("data: {")]
    pieces = [piece for d in deltas for piece in d["delta"].get("tool_calls", [])]
    assert pieces[0]["id"] == "call_7" and pieces[0]["function"]["name"] == "get_weather"
    assert "".join(piece["function"]["arguments"] for piece in pieces) == CALL["function"]["arguments"]
    assert deltas[-1]["finish_reason"] == "tool_calls"
    body = {"messages": [{"role": "user", "content": "weather?"}, {"role": "assistant", "content": None, "tool_calls": [CALL]},
                         {"role": "tool", "tool_call_id": "call_7", "content": "cold"}], "tools": TOOLS}
    said = requests.post(thinker.url + "/v1/chat/completions", json=body, timeout=60).json()["choices"][0]["message"]
    assert said["content"] == "It is cold there."
    function = Upstream.asked[-1]["messages"][1]["tool_calls"][0]["function"]  # the JSON is read on its way
    assert json.loads(function["arguments"]) == {"city": "Oslo"} and isinstance(function["arguments"], str)


def test_what_the_upstream_refuses_or_breaks_is_told_without_its_address(thinker, upstream):
    refused = chat(thinker, "refuse-me")
    assert refused.status_code == 400 and "this is too rude" in refused.json()["error"]["message"]
    body = {"messages": [{"role": "user", "content": "break-off"}], "stream": True}
    lines = requests.post(thinker.url + "/v1/chat/completions", json=body, stream=True, timeout=60).iter_lines(decode_unicode=True)
    assert any("half " in line for line in lines)
    Upstream.half_read.set()
    rest = "\n".join(lines)
    assert '"error"' in rest and upstream.split("//")[1] not in rest


def test_an_upstream_that_sends_no_events_is_a_503(thinker):
    for content in ("no-events", "endless"):
        answer = chat(thinker, content)
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "upstream_failed", answer.text


def test_a_pipeline_without_a_model_name_sends_none(upstream, start, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(THINKER.format(url=upstream).replace(", model: big", ""))
    assert chat(start(command=("omni", "serve", str(path))), "hello", model="talker").status_code == 200
    assert "model" not in Upstream.asked[-1]


@pytest.mark.parametrize("param,fields", [
    ("n", {"n": 2}), ("logprobs", {"logprobs": True}), ("return_token_ids", {"return_token_ids": True}),
    ("logit_bias", {"logit_bias": {"1": 2}}), ("min_tokens", {"min_tokens": 3}), ("stop_token_ids", {"stop_token_ids": [1]}),
    ("ignore_eos", {"ignore_eos": True}), ("no_stop_trim", {"no_stop_trim": True}), ("skip_special_tokens", {"skip_special_tokens": False}),
    ("response_format", {"response_format": {"type": "json_object"}}), ("priority", {"priority": 2}), ("lora_path", {"lora_path": "a"}),
    ("documents", {"documents": [{"text": "x"}]}), ("separate_reasoning", {"separate_reasoning": False}),
    ("functions", {"functions": [TOOLS[0]["function"]]}),
    ("stream_options", {"stream": True, "stream_options": {"continuous_usage_stats": True}}),
    ("tool_choice", {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOLS[0]]}}}),
    ("talker_top_p", {"talker_top_p": 0.5}), ("stage_sampling", {"stage_sampling": {"encode": {"top_k": 3}}}),
    ("stage_sampling", {"stage_sampling": {"think": {"top_k": 0}}}), ("stage_params", {"stage_params": {"think": {"a": 1}}}),
])
def test_fields_that_the_thinker_cannot_honour_are_refused(thinker, param, fields):
    answer = chat(thinker, "hello", **fields)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == param, answer.text


def test_an_upstream_that_is_not_there_is_a_503(start, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(THINKER.format(url="http://127.0.0.1:9/v1"))
    answer = chat(start(command=("omni", "serve", str(path))), "hello")
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "upstream_failed"
    assert "127.0.0.1" not in answer.text


SPOKEN = """name: spoken
stages:
  - {{name: decode, factory_path: portico.decode, route_fn: portico.first_by_task, stream_to: [hear, think, sentences]}}
  - {{name: hear, factory_path: portico.http, factory: {{url: "{url}", model: mock, role: hear, translates: true}}, route_fn: portico.by_task, stream_to: [think, transcript]}}
  - {{name: transcript, factory_path: portico.pass, terminal: true}}
  - {{name: think, factory_path: portico.http, factory: {{url: "{url}", model: mock, role: think}}, route_fn: portico.by_task, stream_to: [reply, sentences]}}
  - {{name: reply, factory_path: portico.pass, terminal: true}}
  - {{name: sentences, factory_path: portico.sentences, stream_to: [say]}}
  - {{name: say, factory_path: portico.http, factory: {{url: "{url}", model: mock, role: say, voices: [default, other]}}, stream_to: [encode]}}
  - {{name: encode, factory_path: portico.encode, terminal: true}}
"""


@pytest.fixture(scope="module")
def mock(tmp_path_factory):
    path = tmp_path_factory.mktemp("omni") / "mock.yaml"
    path.write_text(PIPELINE)
    server = Server(command=("omni", "serve", str(path)))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def spoken(mock, tmp_path_factory):
    """A pipeline whose ears, mind and voice are another server's."""
    path = tmp_path_factory.mktemp("omni") / "spoken.yaml"
    path.write_text(SPOKEN.format(url=mock.url + "/v1"))
    server = Server(command=("omni", "serve", str(path)))
    yield server
    server.stop()


def noise(seconds, rate=16000):
    """A second of silence, noise, and silence again."""
    chance = random.Random(1)
    loud = [int(chance.uniform(-9000, 9000)) for _ in range(int(seconds * rate))]
    samples = [0] * rate + loud + [0] * rate
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return out.getvalue()


def test_an_upstream_speaks(spoken):
    answer = requests.post(spoken.url + "/v1/audio/speech", json={"input": "One thing. And another.", "voice": "other", "response_format": "pcm"}, timeout=60)
    assert answer.status_code == 400 and "no voice `other`" in answer.json()["error"]["message"]  # the other server's answer
    answer = requests.post(spoken.url + "/v1/audio/speech", json={"input": "One thing. And another.", "response_format": "pcm"}, timeout=60)
    assert answer.status_code == 200, answer.text
    samples = struct.unpack(f"<{len(answer.content) // 2}h", answer.content)
    assert list(samples[::480]) == [0, 327, 655, 983, 1310] * 2


def test_an_upstream_hears_by_stretches_of_speech_and_translates(spoken):
    def hear(path="/v1/audio/transcriptions", **fields):
        return requests.post(spoken.url + path, files={"file": ("a.wav", noise(2))}, data=fields, timeout=60)
    verbose = hear(response_format="verbose_json", language="ja").json()
    assert verbose["text"] == "w0 w1 w2 w3 w4 " and verbose["duration"] == 4.0
    assert 0.5 < verbose["segments"][0]["start"] < 1.1 and 2.9 < verbose["segments"][0]["end"] < 3.6
    refused = hear(path="/v1/audio/translations")  # the other server's answer: it cannot
    assert refused.status_code == 400 and "translat" in refused.json()["error"]["message"]


def test_a_chat_is_heard_thought_and_spoken_elsewhere(spoken):
    clip = {"type": "input_audio", "input_audio": {"data": base64.b64encode(noise(1)).decode(), "format": "wav"}}
    answer = chat(spoken, [clip, {"type": "text", "text": "What was that?"}], model="spoken", modalities=["text", "audio"])
    assert answer.status_code == 200, answer.text
    message = answer.json()["choices"][0]["message"]
    assert message["content"] == "w0 w1 w2 w3 w4 " and len(message["audio"]["data"]) > 1000


class Ears(http.server.BaseHTTPRequestHandler):
    """Hears a word in everything; `forms` has what it was asked."""
    forms = []

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        fields = re.findall(rb'name="(\w+)"\r\n\r\n(.*?)\r\n', body)
        self.forms.append((self.path, {name.decode(): value.decode() for name, value in fields}))
        answer = b'{"text": "konnichiwa"}'
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


EARS = """name: ears
stages:
  - {{name: decode, factory_path: portico.decode, stream_to: [hear]}}
  - {{name: hear, factory_path: portico.http, factory: {{url: "{url}", role: hear, translates: true}}, terminal: true}}
"""


def test_what_a_transcription_asks_is_passed_on_or_refused(start, tmp_path):
    """The temperature was dropped without a word, the language told as English, and words without times as no words."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ears)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = tmp_path / "p.yaml"
    path.write_text(EARS.format(url=f"http://127.0.0.1:{server.server_address[1]}/v1"))
    ears = start(command=("omni", "serve", str(path)))

    def hear(route="transcriptions", **fields):
        return requests.post(f"{ears.url}/v1/audio/{route}", files={"file": ("a.wav", noise(1))}, data=fields, timeout=60)
    try:
        heard = hear(temperature="0.4", language="ja", prompt="A greeting.", response_format="verbose_json").json()
        assert (heard["text"], heard["language"]) == ("konnichiwa", "ja")
        told = {"response_format": "json", "temperature": "0.4", "language": "ja", "prompt": "A greeting."}
        assert Ears.forms.pop() == ("/v1/audio/transcriptions", told)
        assert hear(route="translations", language="ja", response_format="verbose_json").json()["language"] == "english"
        assert Ears.forms.pop() == ("/v1/audio/translations", {"response_format": "json", "language": "ja"})
        for param, fields in (("max_new_tokens", {"max_new_tokens": "9"}), ("repetition_penalty", {"repetition_penalty": "1.5"}),
                              ("temperature", {"temperature": "2"})):
            refused = hear(**fields)
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, param), refused.text
        assert not Ears.forms
        refused = hear(response_format="verbose_json", **{"timestamp_granularities[]": "word"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "timestamp_granularities"), refused.text
    finally:
        server.shutdown()


FUNCTION = {"type": "function", "name": "get_weather", "description": "The weather.", "parameters": {"type": "object"}}


def say(ws, text):
    ask(ws, type="conversation.item.create", item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})


def test_realtime_sessions_call_tools_and_go_on_with_their_output(thinker):
    with connect(thinker, "/v1/realtime?model=talker") as ws:
        tell(ws)
        ask(ws, type="session.update", session={"type": "realtime", "output_modalities": ["text"], "tools": [FUNCTION], "tool_choice": "auto"})
        updated = tell(ws)["session"]
        assert updated["tools"] == [FUNCTION] and updated["tool_choice"] == "auto"
        say(ws, "What is the weather in Oslo?")
        ask(ws, type="response.create")
        events = until(ws, "response.done")
        types = [e["type"] for e in events]
        assert types.count("response.output_item.added") == 1 and "response.output_text.delta" not in types
        done = next(e for e in events if e["type"] == "response.function_call_arguments.done")
        assert (done["call_id"], done["name"], done["arguments"]) == ("call_7", "get_weather", CALL["function"]["arguments"])
        assert "".join(e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta") == done["arguments"]
        output = events[-1]["response"]["output"]
        assert [(o["type"], o["status"], o["call_id"]) for o in output] == [("function_call", "completed", "call_7")]
        ask(ws, type="conversation.item.create", item={"type": "function_call_output", "call_id": "call_7", "output": "cold"})
        ask(ws, type="response.create")
        events = until(ws, "response.done")
        assert "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta") == "It is cold there."
        messages = Upstream.asked[-1]["messages"]
        assert [m["role"] for m in messages] == ["user", "assistant", "tool"] and json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]) == {"city": "Oslo"}


@pytest.mark.parametrize("message,param", [
    ({"type": "session.update", "session": {"tools": [{"type": "mcp"}]}}, "session.tools[0].type"),
    ({"type": "session.update", "session": {"tools": [FUNCTION, {**FUNCTION, "server_url": "x"}]}}, "session.tools[1].server_url"),
    ({"type": "session.update", "session": {"tools": [{**FUNCTION, "parameters": []}]}}, "session.tools[0].parameters"),
    ({"type": "session.update", "session": {"tools": ["f"]}}, "session.tools[0].type"),
    ({"type": "session.update", "session": {"tool_choice": "maybe"}}, "session.tool_choice"),
    ({"type": "response.create", "response": {"tool_choice": 7}}, "response.tool_choice"),
])
def test_wrong_tools_of_realtime_sessions_are_named(thinker, message, param):
    with connect(thinker, "/v1/realtime") as ws:
        tell(ws)
        ask(ws, **message)
        assert until(ws, "error")[-1]["error"]["param"] == param


def test_tools_that_nobody_would_call_are_refused(mock, thinker):
    with connect(mock, "/v1/realtime?model=mock") as ws:
        tell(ws)
        ask(ws, type="session.update", session={"type": "realtime", "tools": [FUNCTION]})
        assert until(ws, "error")[-1]["error"]["param"] == "session.tools"
    with connect(thinker, "/v1/realtime") as ws:  # a call is asked for, and there are no tools
        tell(ws)
        say(ws, "weather?")
        ask(ws, type="response.create", response={"output_modalities": ["text"], "tool_choice": "required"})
        response = until(ws, "response.done")[-1]["response"]
        assert response["status"] == "failed" and "tool_choice" in response["status_details"]["error"]["message"]


def test_the_openai_client_calls_tools(thinker):
    openai = pytest.importorskip("openai")

    async def talk():
        client = openai.AsyncOpenAI(base_url=thinker.url + "/v1", api_key="none", websocket_base_url=f"ws://127.0.0.1:{thinker.port}/v1")
        async with client.realtime.connect(model="talker") as connection:
            await connection.session.update(session={"type": "realtime", "output_modalities": ["text"], "tools": [FUNCTION]})
            await connection.conversation.item.create(item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "weather?"}]})
            await connection.response.create()
            said = ""
            async for event in connection:
                assert event.type != "error", event
                if event.type == "response.function_call_arguments.done":
                    await connection.conversation.item.create(item={"type": "function_call_output", "call_id": event.call_id, "output": "wet"})
                if event.type == "response.output_text.delta":
                    said += event.delta
                if event.type == "response.done":
                    if said:
                        return said
                    await connection.response.create()

    assert asyncio.run(asyncio.wait_for(talk(), 60)) == "It is wet there."
