"""Requests with images, videos and audio to the SGLang engine. The processor that reads them is a stand-in's (sglang_stand_in.py), the process
that it runs in and all between it and the client are the real ones."""
import base64
import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading

import grpc
import pytest
import requests
from conftest import wait_until
from gateway_fleet import Process
from grpc_client import Client
from test_sglang import engine_pid, events, flags, generate, kill_engine

TEMPLATE = ("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
            "{% if p.type in ['image', 'video', 'audio'] %}<{{ p.type }}>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "sees.jinja"
    path.write_text(TEMPLATE)
    return ("--chat-template", path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    (folder / "three.png").write_bytes(b"IMAGE 3")
    (folder / "two.wav").write_bytes(b"fLaCAUDIO 2")
    (folder / "two.mp4").write_bytes(b"fLaCVIDEO 2")
    return folder


@pytest.fixture(scope="module")
def server(template, folder):
    from conftest import Server

    server = Server(*flags("--stand-in-sees", portico=(
        *template, "--allowed-media-domain", "127.0.0.1,*.example.org", "--allowed-local-media-path", folder,
        "--limit-mm-data-per-request", '{"image": 4, "audio": 2, "video": 1}')))
    yield server
    server.stop()


class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("location", "http://localhost:1/x.png")
            return self.end_headers()
        self.send_response(200)
        kind = {"wav": "audio", "mp4": "video"}.get(self.path.rpartition(".")[2], "image")
        self.send_header("content-type", "text/html" if self.path == "/page" else f"{kind}/{self.path.rpartition('.')[2]}")
        self.end_headers()
        self.wfile.write((b"" if kind == "image" else b"fLaC") + kind.upper().encode() + b" 2")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def files():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def image(content):
    """Or a video, or audio: these begin like a container."""
    return base64.b64encode(b"fLaC" * content.startswith((b"VIDEO", b"AUDIO")) + content).decode()


def data(content):
    return "data:image/png;base64," + image(content)


def part(url, **more):
    return {"type": "image_url", "image_url": {"url": url, **more}}


def text(words):
    return {"type": "text", "text": words}


GREEDY = {"max_new_tokens": 6, "ignore_eos": True}


def test_an_image_has_its_places_in_the_prompt(server):
    answer = generate(server, input_ids=[514, 965], image_data=image(b"IMAGE 3"), sampling_params=GREEDY).json()
    assert answer["output_ids"] == [601, 601, 601, 514, 965, 601]
    assert answer["meta_info"]["prompt_tokens"] == 5


def test_a_chat_gives_its_text_and_its_images_in_their_order(server):
    content = [text("Look"), part(data(b"IMAGE 2"), detail="low"), text(" and "), part(data(b"IMAGE 1"))]
    whole = server.chat(content, max_tokens=4).json()
    alone = server.chat("Look<image> and <image>", max_tokens=4).json()
    assert whole["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"] + 3
    response = requests.post(server.url + "/v1/chat/completions", stream=True, timeout=60, json={
        "messages": [{"role": "user", "content": content}], "max_tokens": 4, "stream": True})
    got = "".join(e["choices"][0]["delta"].get("content", "") for e in events(response))
    assert got == whole["choices"][0]["message"]["content"]


def test_choices_and_prompts_of_a_batch_have_their_own_images(server):
    both = generate(server, input_ids=[514], image_data=image(b"IMAGE 2"), sampling_params={**GREEDY, "n": 2}).json()
    assert [answer["output_ids"] for answer in both] == [[601, 601, 514] * 2] * 2
    batch = generate(server, input_ids=[[514], [965], [7]], sampling_params=GREEDY, image_data=[
        image(b"IMAGE 1"), None, [image(b"IMAGE 1"), {"url": data(b"IMAGE 1")}]]).json()
    assert [answer["output_ids"][:3] for answer in batch] == [[601, 514, 601], [965] * 3, [601, 602, 7]]


def test_images_are_fetched_from_where_that_is_allowed(server, files, folder):
    for url in (files + "/a.png", str(folder / "three.png"), f"file://{folder}/three.png"):
        answer = generate(server, input_ids=[514], image_data=[url, image(b"IMAGE 1")], sampling_params=GREEDY)
        assert answer.status_code == 200, answer.text
        assert {601, 602} < set(answer.json()["output_ids"]), url
    answer = server.chat([part(files + "/a.png"), text("x")], max_tokens=2)
    assert answer.status_code == 200, answer.text


def test_images_come_over_grpc_too(server, files):
    stub = Client(f"127.0.0.1:{server.port}").sglang
    params = {"max_new_tokens": 6, "ignore_eos": True}
    last = list(stub.Generate(input_ids=[514], image_data=[files + "/a.png", image(b"IMAGE 1")], sampling_params=params))[-1]
    assert list(last.output_ids)[-6:] == [601, 601, 602, 514, 601, 601]
    for wrong in (["ftp://x/y.png"], [files + "/page"], [image(b"TEXT")]):
        with pytest.raises(grpc.RpcError) as refused:
            list(stub.Generate(input_ids=[514], image_data=wrong, sampling_params=params))
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT, wrong


AUDIO_PARTS = {
    "audio_url": {"url": "data:audio/wav;base64," + image(b"AUDIO 3")},
    "input_audio": {"data": image(b"AUDIO 3"), "format": "wav"},
}


def test_audio_and_videos_have_their_places_in_the_prompt(server):
    for field, content, id in (("audio_data", b"AUDIO 3", 801), ("video_data", b"VIDEO 3", 701)):
        answer = generate(server, input_ids=[514, 965], sampling_params=GREEDY, **{field: image(content)}).json()
        assert answer["output_ids"] == [id, id, id, 514, 965, id], field
        assert answer["meta_info"]["prompt_tokens"] == 5
    answer = generate(server, input_ids=[514], sampling_params={"max_new_tokens": 5, "ignore_eos": True}, image_data=image(b"IMAGE 1"),
                      audio_data=[image(b"AUDIO 1"), {"url": image(b"AUDIO 1")}], video_data=image(b"VIDEO 1")).json()
    assert sorted(answer["output_ids"]) == [514, 601, 701, 801, 802]
    assert {k: v for k, v in answer["meta_info"].items() if k in ("image_tokens", "video_tokens", "audio_tokens")} == {
        "image_tokens": 1, "video_tokens": 1, "audio_tokens": 2}
    batch = generate(server, input_ids=[[514], [965]], sampling_params=GREEDY, audio_data=[None, image(b"AUDIO 1")]).json()
    assert [answer["output_ids"][:2] for answer in batch] == [[514, 514], [801, 965]]


@pytest.mark.parametrize("kind, value", [*AUDIO_PARTS.items(), ("video_url", {"url": "data:video/mp4;base64," + image(b"VIDEO 3")})])
def test_a_chat_gives_its_audio_and_its_videos(server, kind, value):
    mark = "<video>" if kind == "video_url" else "<audio>"
    whole = server.chat([text("Hear"), {"type": kind, kind: value}, part(data(b"IMAGE 1"))], max_tokens=4)
    assert whole.status_code == 200, whole.text
    alone = server.chat(f"Hear{mark}<image>", max_tokens=4).json()
    assert whole.json()["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"] + 4
    details = whole.json()["usage"]["prompt_tokens_details"]
    assert {**details, "cached_tokens": 0} == {"cached_tokens": 0, "image_tokens": 1, f"{mark[1:-1]}_tokens": 3}
    assert list(alone["usage"]["prompt_tokens_details"]) == ["cached_tokens"]


def test_audio_and_videos_are_fetched_and_come_over_grpc(server, files, folder):
    stub = Client(f"127.0.0.1:{server.port}").sglang
    for field, ending, id in (("audio_data", "wav", 801), ("video_data", "mp4", 701)):
        for url in (f"{files}/a.{ending}", str(folder / f"two.{ending}")):
            answer = generate(server, input_ids=[514], sampling_params=GREEDY, **{field: url})
            assert answer.status_code == 200 and answer.json()["output_ids"][:3] == [id, id, 514], answer.text
        last = list(stub.Generate(input_ids=[514], sampling_params=GREEDY, **{field: [f"{files}/a.{ending}"]}))[-1]
        assert list(last.output_ids)[-6:] == [id, id, 514] * 2
        wrong = generate(server, input_ids=[514], sampling_params=GREEDY, **{field: files + "/a.png"})
        assert wrong.status_code == 400 and "according to its content-type" in wrong.text and json.loads(wrong.text)["error"]["param"] == field
        wrong = generate(server, input_ids=[514], sampling_params=GREEDY, **{field: image(b"fLaCIMAGE 1")})
        assert wrong.status_code == 400 and f"this is no {field[:5]}" in wrong.text and json.loads(wrong.text)["error"]["param"] == field


def test_media_without_a_decoder_are_refused_with_the_reason(start, template):
    deaf = start(*flags("--stand-in-sees", "--stand-in-deaf", "no torchcodec is there", portico=template))
    for field, what in (("audio_data", "audio"), ("video_data", "a video")):
        answer = generate(deaf, input_ids=[514], sampling_params=GREEDY, image_data=image(b"IMAGE 1"), **{field: image(b"X")})
        assert answer.status_code == 400 and json.loads(answer.text)["error"]["param"] == field
        assert f"{field}[0] is {what}, which this model's engine does not take: no torchcodec is there" in answer.text
    answer = deaf.chat([{"type": "input_audio", "input_audio": AUDIO_PARTS["input_audio"]}])
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "messages"
    assert "messages[0].content[0].input_audio is audio, which" in answer.text and "no torchcodec is there" in answer.text
    assert generate(deaf, input_ids=[514], sampling_params=GREEDY, image_data=image(b"IMAGE 1")).status_code == 200
    assert requests.get(deaf.url + "/model_info", timeout=60).json()["has_audio_understanding"] is False


def test_a_playlist_would_lead_a_decoder_to_other_files(server):
    for field, content, why in (("video_data", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "this video is in none of the formats"),
                                ("audio_data", b"fLaC\nc=IN IP4 127.0.0.1\nm=audio 15000 RTP/AVP 96\n", "a playlist is not audio")):
        answer = generate(server, input_ids=[514], sampling_params=GREEDY, **{field: image(content)})
        assert answer.status_code == 400 and why in answer.text and json.loads(answer.text)["error"]["param"] == field
    answer = generate(server, input_ids=[514], sampling_params=GREEDY, image_data=image(b"#EXTM3U"))
    assert "this is no image" in answer.text


def test_media_that_break_their_decoder_leave_every_engine_in_service(start, template):
    # Each choice counted as a failure of an engine, and sixteen opened its breaker for a minute.
    pair = start(*flags("--stand-in-sees", portico=(*template, "--sglang-replicas", "2")))
    answer = generate(pair, input_ids=[514], image_data=image(b"BROKEN"), sampling_params={**GREEDY, "n": 16})
    assert answer.status_code == 400 and "a frame cannot be decoded" in answer.text
    for _ in range(4):
        answer = generate(pair, input_ids=[514], image_data=image(b"DIE"), sampling_params=GREEDY)
        assert answer.status_code == 400, answer.text
    for _ in range(4):
        assert generate(pair, input_ids=[514], sampling_params=GREEDY).status_code == 200


def test_media_that_a_server_has_no_memory_for_open_no_breaker_of_a_gateway(server):
    # Their failures counted against each worker that they were tried on.
    gateway = Process("route", "--prometheus-port", "0", "--worker-urls", server.url, "--cb-failure-threshold", "1")
    try:
        gateway.wait_ready("/readiness")
        for _ in range(3):
            answer = generate(gateway, input_ids=[514], image_data=image(b"FULL"), sampling_params=GREEDY)
            assert answer.status_code == 500 and answer.json()["error"]["code"] == "media_failed", answer.text
            assert answer.headers["x-portico-failure"] == "media_failed"
        assert generate(gateway, input_ids=[514], sampling_params=GREEDY).status_code == 200
        assert gateway.metric("portico_gateway_worker_breaker_opened_total") == 0
        assert gateway.end() == 0, gateway.output()
    finally:
        gateway.kill()


def test_a_batch_may_have_many_prompts_with_media(server):
    batch = generate(server, input_ids=[[514]] * 100, image_data=[image(b"IMAGE 1")] * 100, sampling_params={"max_new_tokens": 1})
    assert batch.status_code == 200 and len(batch.json()) == 100, batch.text


def test_a_file_beyond_the_bound_of_its_kind_is_not_read(server, folder):
    for field, ending, most in (("image_data", "png", 10 << 20), ("video_data", "mp4", 64 << 20), ("audio_data", "wav", 25 << 20)):
        path = folder / f"large.{ending}"
        with open(path, "wb") as file:
            file.truncate(most + 1)
        answer = generate(server, input_ids=[514], sampling_params=GREEDY, **{field: str(path)})
        assert answer.status_code == 400 and f"{field}[0] has more than {most} bytes" in answer.text, answer.text
        path.unlink()
    server.wait_for("portico_media_bytes", 0)


@pytest.mark.parametrize("url, why", [
    ("http://localhost:1/a.png", "does not fetch media"), ("http://10.0.0.1/a.png", "does not fetch media"),
    ("ftp://127.0.0.1/a.png", "must be"), ("file:///etc/passwd", "not a file that this server may read"),
    ("/etc/hostname.png", "not a file that this server may read"), ("data:image/png,abc", "base64"), ("!!!", "base64"),
    ("%s/page", "is not an image"), ("%s/elsewhere", "does not fetch media"), (data(b"TEXT"), "this is no image"),
])
def test_what_is_no_image_or_not_to_be_had_is_the_clients_400(server, files, url, why):
    url = url % files if "%s" in url else url
    answer = generate(server, input_ids=[514], image_data=url, sampling_params=GREEDY)
    assert answer.status_code == 400 and why in answer.text, answer.text
    answer = server.chat([part(url), text("x")])
    assert answer.status_code == 400 and why in answer.text, answer.text
    assert answer.json()["error"]["param"] == "messages"


def test_requests_that_do_not_fit_are_refused(server):
    for body, why in [
            ({"image_data": [image(b"IMAGE 1")] * 5}, "at most 4 images"),
            ({"image_data": image(b"IMAGE 9999")}, "context length"),
            ({"image_data": image(b"IMAGE 2000"), "sampling_params": {"max_new_tokens": 1000}}, "asked for"),
            ({"image_data": image(b"IMAGE 1"), "return_logprob": True, "logprob_start_len": 0}, "logprob_start_len"),
            ({"image_data": {"url": image(b"IMAGE 1"), "format": "processor_output"}}, "not supported"),
            ({"image_data": 7}, "image_data"), ({"image_data": [[image(b"IMAGE 1")]]}, "image_data"),
            ({"video_data": "x"}, "video_data[0] must be a video in base64"), ({"audio_data": "x"}, "audio_data[0] must be audio in base64"),
            ({"audio_data": [image(b"AUDIO 1")] * 3}, "at most 2 audio files"), ({"video_data": [image(b"VIDEO 1")] * 2}, "at most 1 videos"),
            ({"audio_data": {"url": image(b"AUDIO 1"), "detail": "low"}}, "not supported")]:
        answer = generate(server, **{"input_ids": [514], "sampling_params": {"max_new_tokens": 2}, **body})
        assert answer.status_code == 400 and why in answer.text, (body.keys(), answer.text)
    answer = generate(server, text="no mark", image_data=image(b"IMAGE 1"))
    assert answer.status_code == 400 and "0 marks for 1 images" in answer.text
    answer = generate(server, input_ids=[514], image_data=image(b"IMAGE 2000"), sampling_params={"ignore_eos": True, "max_new_tokens": None})
    assert answer.json()["meta_info"]["completion_tokens"] > 40  # what the image leaves
    for odd in (part(""), {"type": "image_url"}, {"type": "video_url", "video_url": {"url": "x"}}, {"type": "audio_url"}, part(data(b"IMAGE 1"), content_hash="x")):
        assert server.chat([odd, text("x")]).status_code == 400, odd


@pytest.fixture
def slow(tmp_path):
    """An image that is read once its file is there."""
    yield f"WAIT {tmp_path}/go".encode(), tmp_path / "go"
    (tmp_path / "go").touch()


def test_text_does_not_wait_for_images(server, slow):
    content, go = slow
    answers = []
    waits = threading.Thread(target=lambda: answers.append(generate(server, input_ids=[514], image_data=image(content), sampling_params=GREEDY)))
    waits.start()
    server.wait_for("portico_requests_waiting", 1)
    for _ in range(3):
        assert generate(server, input_ids=[514], sampling_params=GREEDY).status_code == 200
    assert not answers
    go.touch()
    waits.join()
    assert answers[0].json()["output_ids"][:2] == [601, 514]


def test_an_abort_and_a_client_that_leaves_end_what_waits_for_its_image(server, slow):
    content, go = slow
    answers = []
    for count, (rid, one) in enumerate([("first", content), ("second", b"IMAGE 1")], 1):  # the second waits for the first
        threading.Thread(target=lambda rid=rid, one=one: answers.append(generate(
            server, input_ids=[514], rid=rid, image_data=image(one), sampling_params=GREEDY).json())).start()
        server.wait_for("portico_requests_waiting", count)
    for rid in ("first", "second"):
        requests.post(server.url + "/abort_request", json={"rid": rid}, timeout=60)
    wait_until(lambda: len(answers) == 2, "they do not end")
    assert [a["meta_info"]["finish_reason"]["type"] for a in answers] == ["abort"] * 2
    with pytest.raises(requests.Timeout):
        requests.post(server.url + "/generate", timeout=0.5, json={"input_ids": [514], "image_data": image(content)})
    server.settle()
    go.touch()
    assert generate(server, input_ids=[514], image_data=image(b"IMAGE 1"), sampling_params=GREEDY).status_code == 200


def children(pid):
    return [int(child) for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()]


def helper_pid(server):
    for child in children(engine_pid(server)):
        with open(f"/proc/{child}/cmdline") as file:
            if "spawn_main" in file.read():
                return child
    raise AssertionError("no helper runs")


def test_where_memory_ends_the_helper_goes_first(server):
    with open(f"/proc/{helper_pid(server)}/oom_score_adj") as file:
        assert int(file.read()) == 1000


def test_the_death_of_a_helper_ends_its_request_alone(server):
    with open(f"/proc/{engine_pid(server)}/cmdline") as file:
        words = file.read().split("\0")
    left = pathlib.Path(words[words.index("--ipc-dir") + 1]) / "media-0/video.mp4"
    left.write_bytes(b"of a decoder")
    answer = generate(server, input_ids=[514], image_data=image(b"DIE"), sampling_params=GREEDY)
    # Not 503: clients would ask again, and each time a helper would end.
    assert answer.status_code == 400 and "has ended at them" in answer.text and json.loads(answer.text)["error"]["param"] == "image_data"
    answer = generate(server, input_ids=[514], image_data=image(b"IMAGE 1"), sampling_params=GREEDY)
    assert answer.status_code == 200, answer.text
    assert not left.exists()
    os.kill(helper_pid(server), signal.SIGKILL)  # while it has nothing to do
    assert generate(server, input_ids=[514], sampling_params=GREEDY).status_code == 200
    wait_until(lambda: generate(server, input_ids=[514], image_data=image(b"IMAGE 1"), sampling_params=GREEDY).status_code == 200,
               "it is not started again")
    wait_until(lambda: "is started again" in server.output(), server.output)


def test_a_pause_that_aborts_ends_what_waits_for_its_image(server, slow):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(generate(server, input_ids=[514], image_data=image(slow[0])).json()))
    thread.start()
    server.wait_for("portico_requests_waiting", 1)
    assert requests.post(server.url + "/pause_generation", json={"mode": "abort"}, timeout=60).status_code == 200
    thread.join(60)
    assert answers[0]["meta_info"]["finish_reason"]["type"] == "abort"
    requests.post(server.url + "/continue_generation", json={}, timeout=60)


def test_the_death_of_the_engine_ends_what_waits_for_its_image(start, template, slow):
    server = start(*flags("--stand-in-sees", portico=template))
    helper = helper_pid(server)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(generate(server, input_ids=[514], image_data=image(slow[0]))))
    thread.start()
    server.wait_for("portico_requests_waiting", 1)
    kill_engine(server)
    thread.join(60)
    assert answers and answers[0].status_code == 503
    wait_until(lambda: not os.path.exists(f"/proc/{helper}"), "the helper is left alone")


def test_the_model_s_description_says_whether_it_sees(server, mock):
    for one, sees in [(server, True), (mock, False)]:
        info = requests.get(one.url + "/model_info", timeout=60).json()
        assert info["has_image_understanding"] is info["has_audio_understanding"] is sees
        assert Client(f"127.0.0.1:{one.port}").scheduler.GetModelInfo().supports_vision is sees


def test_models_that_do_not_see_say_so(start, template):
    blind = start(*flags("--stand-in-blind", "its processor does not start", portico=template))
    answer = blind.chat([part(data(b"IMAGE 1")), text("x")])
    assert answer.status_code == 400
    assert "messages[0].content[0].image_url is an image, but this model takes text only: its processor does not start" in answer.text
    answer = generate(blind, input_ids=[514], image_data=image(b"IMAGE 1"))
    assert answer.status_code == 400 and json.loads(answer.text)["error"]["param"] == "image_data"
    other = start(*flags("--stand-in-sees", portico=(*template, "--sglang-media-helpers", "0")))
    assert other.chat([part(data(b"IMAGE 1")), text("x")]).status_code == 400
