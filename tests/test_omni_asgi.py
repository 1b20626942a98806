"""portico.omni: the Python client, the ASGI application and launch_server, before `portico omni serve` itself."""
import asyncio
import base64
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from asgi_driver import Called, Http, Lifespan, scope
from conftest import BINARY, ROOT, WAIT_SECONDS, free_port, wait_until
from test_omni_recorded import PIPELINE, WAV
from omni_stages import ENCODE, python, write

portico = pytest.importorskip("portico", reason="the Python module is not installed")
portico.__path__.insert(0, str(ROOT / "python/portico"))  # this tree's

from portico.omni import Client, ClientError, create_app  # noqa: E402

SPEECH, CHAT = "/v1/audio/speech", "/v1/chat/completions"


@pytest.fixture
def mock_file(tmp_path):
    path = tmp_path / "mock.yaml"
    path.write_text(PIPELINE)
    return path


def client_of(config, **options):
    return Client(config, program=BINARY, **options)


def with_app(config, test, **options):
    """Runs test(app) while the application does."""
    async def run():
        app = create_app(client_of(config), **options)
        async with Lifespan(app):
            await asyncio.wait_for(test(app), WAIT_SECONDS)
    asyncio.run(run())


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def metric(client, name):
    async with client.request("GET", "/metrics") as answer:
        lines = (await answer.read()).decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)


async def idle(client):
    deadline = time.monotonic() + WAIT_SECONDS
    while await metric(client, "portico_pipeline_requests_running"):
        assert time.monotonic() < deadline, "requests go on whose client has left"
        await asyncio.sleep(0.02)


def test_the_application_starts_the_pipeline_and_ends_it_at_shutdown(mock_file, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = {}

    async def test(app):
        seen["pid"] = app.client._process.pid
        assert alive(seen["pid"]) and not list(tmp_path.glob("portico-omni-*")), "its key is still in a file"
        status, body = await Http(app, "/v1/models", method="GET").all()
        assert status == 200 and json.loads(body)["data"][0]["id"] == "parrot"
        status, body = await Http(app, SPEECH, json_body={"input": "hello", "model": "another"}).all()
        assert status == 404 and json.loads(body)["error"]["code"] == "model_not_found"
        assert (await app.client.health()) == {"status": "healthy", "running": True, "problems": []}
    with_app(mock_file, test, model_name="parrot")
    assert not alive(seen["pid"])


def test_speech_chat_and_transcriptions_pass_through(mock_file):
    async def test(app):
        call = Http(app, SPEECH, json_body={"input": "hello", "response_format": "pcm"})
        status, sound = await call.all()
        assert status == 200 and call.headers["content-type"].startswith("audio/pcm") and len(sound) == 4800
        call = Http(app, SPEECH, json_body={"input": "hello", "stream_format": "sse", "response_format": "pcm"})
        status, body = await call.all()
        assert call.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line[6:]) for line in body.decode().split("\n\n") if line.startswith("data: {")]
        assert events[-1]["type"] == "speech.audio.done"
        assert b"".join(base64.b64decode(e["audio"]) for e in events[:-1]) == sound
        chat = {"messages": [{"role": "user", "content": "hello"}], "modalities": ["text", "audio"],
                "audio": {"format": "pcm", "voice": "x"}}
        status, body = await Http(app, CHAT, json_body=chat).all()
        message = json.loads(body)["choices"][0]["message"]
        assert status == 200 and base64.b64decode(message["audio"]["data"]) == sound
        form = (b'--x\r\ncontent-disposition: form-data; name="response_format"\r\n\r\nverbose_json\r\n'
                b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + WAV + b"\r\n--x--\r\n")
        kind = ("content-type", "multipart/form-data; boundary=x")
        bodies = [await Http(app, "/v1/audio/transcriptions", body=form, piece=500, headers=more).all()
                  for more in ([kind], [kind, ("content-length", str(len(form)))])]
        assert [status for status, _ in bodies] == [200, 200]
        assert json.loads(bodies[0][1])["text"] and bodies[0] == bodies[1]
        status, body = await Http(app, SPEECH, json_body={"input": ""}).all()
        assert status == 400 and json.loads(body)["error"]["param"] == "input"
    with_app(mock_file, test)


def test_sound_passes_before_the_rest_of_it_is_made(tmp_path):
    marker = tmp_path / "marker"
    path = write(tmp_path / "p.yaml", python("talk", "wait_between", f"factory: {{marker: '{marker}'}}, stream_to: [encode]"),
                 ENCODE)

    async def test(app):
        call = Http(app, SPEECH, json_body={"input": "hello", "response_format": "pcm"})
        assert await call.head() == 200
        first = await call.piece()
        assert 0 < len(first) <= 960
        marker.write_text("")  # the stage has waited for this
        rest = b""
        while (piece := await call.piece()) is not None:
            rest += piece
        assert len(first + rest) == 960 + 4800
    with_app(path, test)


def test_a_client_that_leaves_or_is_cancelled_ends_its_request(tmp_path):
    path = write(tmp_path / "p.yaml", python("talk", "Hold"), ENCODE)
    endless = {"input": "endless", "response_format": "pcm"}

    async def test(app):
        call = Http(app, SPEECH, json_body=endless)
        assert await call.head() == 200 and await call.piece()
        call.tell("http.disconnect")
        while not call.task.done():  # what was on its way
            await asyncio.wait({call.task, asyncio.ensure_future(call._out.get())}, return_when=asyncio.FIRST_COMPLETED)
        await call.task
        await idle(app.client)
        stream = app.client.speech_stream(endless)
        assert await stream.__anext__()
        await stream.aclose()
        await idle(app.client)
        asked = asyncio.ensure_future(app.client.speech(endless, request_id="long"))
        while not await metric(app.client, "portico_pipeline_requests_running"):
            await asyncio.sleep(0.02)
        assert (await app.client.abort("long")).success
        with pytest.raises(ClientError):
            await asked
        await idle(app.client)
    with_app(path, test)


def test_both_websockets_pass_through(mock_file):
    async def test(app):
        call = Called(app, scope("websocket", "/v1/audio/speech/stream", subprotocols=[]))
        call.tell("websocket.connect")
        await call.next("websocket.accept")
        call.tell("websocket.receive", text=json.dumps({"type": "session.config", "response_format": "pcm"}))
        call.tell("websocket.receive", text=json.dumps({"type": "input.text", "text": "Hello there. And more"}))
        call.tell("websocket.receive", text=json.dumps({"type": "input.done"}))
        kinds = []
        while True:
            event = await call.next()
            if event["type"] == "websocket.close":
                break
            kinds.append("sound" if event.get("bytes") else json.loads(event["text"])["type"])
        assert event["code"] == 1000
        assert kinds == ["session.configured", *["audio.start", "sound", "audio.done"] * 2, "session.done"]
        await call.task
        protocols = ["realtime", "openai-insecure-api-key.whoever"]
        call = Called(app, scope("websocket", "/v1/realtime", subprotocols=protocols))
        call.tell("websocket.connect")
        assert (await call.next("websocket.accept"))["subprotocol"] == "realtime"
        assert json.loads((await call.next("websocket.send"))["text"])["type"] == "session.created"
        call.tell("websocket.receive", text=json.dumps({"type": "no.such.event", "more": "x" * 100000}))
        assert json.loads((await call.next("websocket.send"))["text"])["type"] == "error"
        call.tell("websocket.disconnect", code=1001)
        await call.task
    with_app(mock_file, test)


def test_what_is_not_for_clients_or_from_foreign_pages_is_refused(mock_file):
    async def test(app):
        for path in ("/abort_request", "/start_profile", "/v1/audio/../../abort_request", "/nowhere"):
            status, body = await Http(app, path, json_body={}).all()
            assert status == 404 and json.loads(body)["error"]["message"], path
        evil = [("origin", "http://evil.example")]
        status, body = await Http(app, "/v1/models", method="GET", headers=evil).all()
        assert status == 403 and b"evil.example" in body
        own = [("origin", "http://example.org:8000"), ("authorization", "Bearer of the other application")]
        assert (await Http(app, "/v1/models", method="GET", headers=own, root_path="/voice").all())[0] == 200
        for extensions, answer in (({}, "websocket.close"), ({"websocket.http.response": {}}, "websocket.http.response.start")):
            call = Called(app, scope("websocket", "/v1/realtime", headers=evil, extensions=extensions))
            call.tell("websocket.connect")
            event = await call.next(answer)
            assert event.get("status", 403) == 403 and event.get("code", 1008) == 1008
        call = Called(app, scope("websocket", "/v1/audio/voices", extensions={"websocket.http.response": {}}))
        call.tell("websocket.connect")
        assert (await call.next("websocket.http.response.start"))["status"] == 200  # no WebSocket
    with_app(mock_file, test)


def test_the_program_is_started_without_what_libraries_do_at_a_fork(mock_file):
    """gRPC starts threads in a child that was forked; they ended it before it was the program."""
    forks, watched = multiprocessing.Value("i", 0), True

    def count():
        forks.value += watched

    async def test(_):
        pass
    os.register_at_fork(after_in_child=count)
    with_app(mock_file, test)
    watched = False
    assert forks.value == 0


def test_a_pipeline_that_dies_or_cannot_start_is_told(mock_file, tmp_path):
    async def test(app):
        os.kill(app.client._process.pid, signal.SIGKILL)
        while app.client._process.ended is None:
            await asyncio.sleep(0.02)
        status, body = await Http(app, SPEECH, json_body={"input": "hello"}).all()
        assert status == 503 and "has ended" in json.loads(body)["error"]["message"]
        assert (await app.client.health())["status"] == "unhealthy"
    with_app(mock_file, test)

    async def wrong():
        bad = tmp_path / "bad.yaml"
        bad.write_text(PIPELINE.replace("name: mock", "nmae: mock"))
        with pytest.raises(ClientError, match="bad.yaml:1: unknown key"):
            await client_of(bad).start()
        with pytest.raises(ClientError, match="no-such-program"):
            await Client(program="no-such-program").start()
        call = Called(create_app(client_of(bad)), {"type": "lifespan"})
        call.tell("lifespan.startup")
        assert "unknown key" in (await call.next("lifespan.startup.failed"))["message"]
    asyncio.run(wrong())
    with pytest.raises(ValueError):
        create_app(client_of(mock_file, model_name="a"), model_name="b")


def test_a_client_joins_a_server_that_runs_and_asks_all_it_can(mock_file, start):
    server = start("--api-key", "k", command=("omni", "serve", str(mock_file)))

    async def run():
        with pytest.raises(ClientError, match="not parrot"):
            await Client(url=server.url, api_key="k", model_name="parrot").start()
        with pytest.raises(ClientError) as refused:
            await Client(url=server.url).submit({"messages": []})
        assert refused.value.status == 401
        async with Client(url=server.url + "/v1", api_key="k", model_name="mock") as client:
            speech = await client.speech({"input": "hello", "response_format": "pcm"})
            assert (len(speech.audio_bytes), speech.format, speech.sample_rate) == (4800, "pcm", 24000)
            chat = {"messages": [{"role": "user", "content": "hello"}], "modalities": ["text", "audio"],
                    "audio": {"format": "pcm", "voice": "x"}}
            whole = await client.completion(chat, request_id="one")
            assert whole.request_id == "one" and whole.text and whole.finish_reason == "stop" and whole.usage
            chunks = [chunk async for chunk in client.completion_stream(chat)]
            assert "".join(chunk.text for chunk in chunks) == whole.text and chunks[-1].usage == whole.usage
            sound = b"".join(base64.b64decode(chunk.audio_b64) for chunk in chunks if chunk.modality == "audio")
            assert sound == base64.b64decode(whole.audio["data"]) == speech.audio_bytes
            heard = await client.transcription(WAV, filename="a.wav")
            assert heard["usage"]["type"] == "duration"
            assert isinstance(await client.transcription(WAV, response_format="text"), str)
            with pytest.raises(ClientError) as refused:
                await client.speech({"input": "hello", "voice": "nobody"})
            assert (refused.value.status, refused.value.param) == (400, "voice")
        server.settle()
    asyncio.run(run())


LAUNCH = """import sys, portico
portico.__path__.insert(0, {package!r})
from portico.omni import launch_server
launch_server({config!r}, host="127.0.0.1", port={port}, model_name="parrot", program={program!r}, drain_timeout=7,
              api_key="not-for-others", allowed_media_domains=["a.example.org", "*.sounds.net"], allowed_local_media_path="/tmp")
"""
HOLD = """import asyncio, sys, portico
portico.__path__.insert(0, {package!r})
from portico.omni import Client
async def run():
    client = Client({config!r}, program={program!r})
    await client.start()
    print(client._process.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(run())
"""


def program(text, mock_file, **more):
    return subprocess.Popen([sys.executable, "-c", text.format(package=str(ROOT / "python/portico"), config=str(mock_file),
                                                               program=str(BINARY), **more)],
                            stdout=subprocess.PIPE, text=True)


def test_launch_server_does_all_and_ends_at_sigterm(mock_file):
    port = free_port()
    launched = program(LAUNCH, mock_file, port=port)
    try:
        async def ask():
            client = Client(url=f"http://127.0.0.1:{port}", api_key="not-for-others")
            deadline = time.monotonic() + WAIT_SECONDS
            while (await client.health())["status"] != "healthy":
                assert launched.poll() is None and time.monotonic() < deadline
                await asyncio.sleep(0.05)
            async with client.request("GET", "/get_server_info") as answer:
                assert json.loads(await answer.read())["drain_timeout"] == 7
            async with client.request("GET", "/v1/models") as answer:
                assert json.loads(await answer.read())["data"][0]["id"] == "parrot"
            async with Client(url=client.url).request("GET", "/v1/models") as answer:
                assert answer.status == 401
        asyncio.run(ask())
        children = pathlib.Path(f"/proc/{launched.pid}/task/{launched.pid}/children").read_text().split()
        lines = [pathlib.Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
        assert any(b"serve" in line for line in lines) and not any(b"not-for-others" in line for line in lines)
        launched.terminate()
        assert launched.wait(60) == 0
    finally:
        launched.kill()


def test_no_pipeline_outlives_the_program_that_has_started_it(mock_file, tmp_path, monkeypatch):
    """Nor the folder with its key, which stayed for ever."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    holder = program(HOLD, mock_file)
    pid = int(holder.stdout.readline())
    assert alive(pid)
    holder.kill()
    holder.wait()
    wait_until(lambda: not alive(pid), "the pipeline goes on")
    assert not list(tmp_path.glob("portico-omni-*"))
