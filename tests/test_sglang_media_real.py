"""Images and videos to an installed SGLang on the CPU, compared with SGLang's own server before the same Qwen2-VL of random weights.

PORTICO_SGLANG_PYTHON names a Python that has SGLang (docs/sglang.md says how to install one without a GPU).
"""
import base64
import os
import random
import signal
import struct
import subprocess
import zlib

import pytest
import requests
from conftest import ROOT, wait_until
from real_sglang import CPU_FLAGS, DEMO, PYTHON, set_environment, sglang_server, start_ready
from sglang_requests import ask, same
from test_sglang_media import helper_pid

pytestmark = pytest.mark.skipif(not PYTHON, reason="PORTICO_SGLANG_PYTHON names no Python that has SGLang")
MARK = "<|vision_start|><|image_pad|><|vision_end|>"


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch, tmp_path_factory.mktemp("stub"))
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory, environment):
    folder = tmp_path_factory.mktemp("qwen2-vl")
    subprocess.run([PYTHON, ROOT / "tests/tiny_qwen2_vl.py", DEMO, folder], check=True)
    return folder


@pytest.fixture(scope="module")
def ours(model):
    server = start_ready("--engine", "sglang", "--sglang-python", PYTHON, "--model-path", model, "--served-model-name", "demo",
                         "--reasoning-parser", "none", "--tool-call-parser", "none", "--", *CPU_FLAGS)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def theirs(model):
    with sglang_server(model=model) as url:
        yield url


def png(width, height, seed):
    """Random rectangles."""
    rng = random.Random(seed)
    rows = [bytearray(width * 3) for _ in range(height)]
    for _ in range(6):
        color = bytes(rng.randrange(256) for _ in range(3))
        x, y = rng.randrange(width), rng.randrange(height)
        for row in rows[y:y + rng.randint(4, height)]:
            right = min(width, x + rng.randint(4, width))
            row[3 * x:3 * right] = color * (right - x)
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", pixels) + chunk(b"IEND", b""))


def picture(rng):
    return base64.b64encode(png(rng.randint(30, 200), rng.randint(30, 200), rng.randrange(1000))).decode()


def cases(count):
    """Chats and native requests with one to three images, greedy, whole and streamed."""
    rng = random.Random(24)
    for i in range(count):
        images = [picture(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
        words = rng.choice(["What is this?", "Compare.", "one two three"])
        stream = {"stream": True} if rng.random() < 0.3 else {}
        if i % 2:
            parts = [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + image}} for image in images]
            parts.insert(rng.randint(0, len(parts)), {"type": "text", "text": words})
            yield "/v1/chat/completions", {"model": "demo", "messages": [{"role": "user", "content": parts}], "temperature": 0,
                                           "max_tokens": rng.randint(1, 20), **stream}
            continue
        more = rng.choice([{}, {"return_logprob": True, "top_logprobs_num": 2}])
        params = {"temperature": 0, "max_new_tokens": rng.randint(1, 20), "ignore_eos": True}
        yield "/generate", {"text": words + MARK * len(images) + "so", "image_data": images, "sampling_params": params, **more, **stream}


def test_answers_to_images_are_those_of_sglangs_own_server(ours, theirs):
    wrong, texts = [], set()
    for path, body in cases(int(os.environ.get("PORTICO_SGLANG_IMAGE_CASES", "60"))):
        mine, other = ask(ours.url, path, body), ask(theirs, path, body)
        assert mine[0] == other[0] == 200, (path, mine, other)
        texts.add(str(mine[1]))
        if not same(mine[1], other[1]):
            wrong.append(f"{path}\n  ours   {mine}\n  theirs {other}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:5])
    assert len(texts) > 20  # they depend on what is seen


def generate(server, **body):
    return requests.post(server.url + "/generate", json=body, timeout=120)


def test_the_answer_depends_on_the_image(ours):
    body = {"text": "a" + MARK + "b", "sampling_params": {"temperature": 0, "max_new_tokens": 16, "ignore_eos": True}}
    texts = {generate(ours, **body, image_data=picture(random.Random(seed))).json()["text"] for seed in range(6)}
    assert len(texts) > 2


def refused(server, field, **body):
    answer = generate(server, text="a" + MARK, sampling_params={"max_new_tokens": 2}, **body)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field, answer.text
    return answer.json()["error"]["message"]


def test_the_kinds_that_cannot_be_read_are_refused_with_the_reason(ours):
    assert "the model's processor has no place for it" in refused(ours, "audio_data", audio_data="AAAA")
    info = requests.get(ours.url + "/model_info", timeout=60).json()
    assert (info["has_image_understanding"], info["has_audio_understanding"]) == (True, False)
    if decodes_videos():
        assert "cannot be read" in refused(ours, "video_data", video_data="AAAA")
    else:
        assert "neither torchcodec nor decord" in refused(ours, "video_data", video_data="AAAA")


def decodes_videos():
    code = "import sys; sys.path.insert(0, sys.argv[1]); import sglang_media; sys.exit(bool(sglang_media.missing_decoder('video')))"
    return subprocess.run([PYTHON, "-c", code, ROOT / "python/portico"]).returncode == 0


def avi(seed, width=112, height=84, rate=8, count=16):
    """Two seconds of moving stripes: uncompressed, rows from below, blue first."""
    chunk = lambda kind, body: kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
    chunks = lambda kind, body: chunk(b"LIST", kind + body)
    row = lambda i, y: bytes(b for x in range(width) for b in ((x * seed + i * 9) % 256, (y * 3 + i * seed) % 256, (x + y + seed * 40) % 256))
    frames = [b"".join(row(i, y) for y in range(height)) for i in range(count)]
    size = len(frames[0])
    main = struct.pack("<14I", 1000000 // rate, size * rate, 0, 0x10, count, 0, 1, size, width, height, 0, 0, 0, 0)
    stream = b"vidsDIB " + struct.pack("<11I4H", 0, 0, 0, 1, rate, 0, count, size, 0, 0, 0, 0, 0, width, height)
    picture = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, size, 0, 0, 0, 0)
    head = chunks(b"hdrl", chunk(b"avih", main) + chunks(b"strl", chunk(b"strh", stream) + chunk(b"strf", picture)))
    index = b"".join(b"00db" + struct.pack("<3I", 0x10, 4 + i * (size + 8), size) for i in range(count))
    return chunk(b"RIFF", b"AVI " + head + chunks(b"movi", b"".join(chunk(b"00db", frame) for frame in frames)) + chunk(b"idx1", index))


def test_answers_to_videos_are_those_of_sglangs_own_server(ours, theirs):
    if not decodes_videos():
        pytest.skip("SGLang's Python has neither torchcodec nor decord")
    texts = set()
    for seed in (1, 2, 3):
        content = base64.b64encode(avi(seed)).decode()
        params = {"temperature": 0, "max_new_tokens": 16, "ignore_eos": True}
        parts = [{"type": "video_url", "video_url": {"url": "data:video/x-msvideo;base64," + content}}, {"type": "text", "text": "What?"}]
        for path, body in (
                ("/generate", {"text": "a" + MARK.replace("image", "video") + "b", "video_data": [content], "sampling_params": params}),
                ("/v1/chat/completions", {"model": "demo", "messages": [{"role": "user", "content": parts}], "temperature": 0, "max_tokens": 16})):
            mine, other = ask(ours.url, path, body), ask(theirs, path, body)
            assert mine[0] == other[0] == 200, (path, mine, other)
            assert same(mine[1], other[1]), f"{path}\n  ours   {mine}\n  theirs {other}"
            texts.add(str(mine[1]))
    assert len(texts) > 2  # they depend on what is seen


def test_what_the_processor_cannot_read_is_a_400_and_ends_nothing(ours):
    good = picture(random.Random(1))
    for body in ({"image_data": base64.b64encode(b"no picture at all").decode()},
                 {"image_data": good[:200]}, {"image_data": [good, good]}, {"text": "no place", "image_data": good}):
        answer = generate(ours, **{"text": "a" + MARK, "sampling_params": {"max_new_tokens": 2}, **body})
        assert answer.status_code == 400, (list(body), answer.text)
    big = base64.b64encode(png(5000, 5000, 7)).decode()
    assert generate(ours, text="a" + MARK, image_data=big, sampling_params={"max_new_tokens": 2}).status_code == 200
    assert generate(ours, text="a" + MARK, image_data=good, sampling_params={"max_new_tokens": 2}).status_code == 200
    assert generate(ours, text="only text", sampling_params={"max_new_tokens": 2}).status_code == 200


def test_a_helper_that_dies_is_started_again(ours):
    os.kill(helper_pid(ours), signal.SIGKILL)
    assert generate(ours, text="only text", sampling_params={"max_new_tokens": 2}).status_code == 200
    good = picture(random.Random(1))
    wait_until(lambda: generate(ours, text="a" + MARK, image_data=good, sampling_params={"max_new_tokens": 2}).status_code == 200,
               "it does not come back")
