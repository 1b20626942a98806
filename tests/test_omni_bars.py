"""How well speech is said and heard: sums by a grammar, lengths as ffprobe measures them, recordings beside pocketsphinx_batch."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import EXTENDED, SANITIZED
from test_omni import SENTENCES, errors, hear, needs_speech, omni, say, words  # noqa: F401 (omni is a fixture)

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
RECORDINGS = pathlib.Path("/usr/share/pocketsphinx/test/data")
MODEL = pathlib.Path("/usr/share/pocketsphinx/model/en-us")


def heard_by_grammar(server, audio, grammar):
    return hear(server, audio, stage_params=json.dumps({"hear": {"grammar": grammar}})).json()["text"]


@needs_speech
def test_sums_are_heard_exactly_by_a_grammar(omni):
    """Nine of ten, of 15; of all 100 in the extended run."""
    grammar = f"#JSGF V1.0;\ngrammar sums;\n<n> = {' | '.join(NUMBERS)};\npublic <sum> = <n> (plus | minus) <n>;"
    sums = [(a, b) for a in range(1, 11) for b in range(1, 11)]
    exact, told = 0, []
    chosen = sums if EXTENDED and not SANITIZED else sums[::7]
    for a, b in chosen:
        sign = "plus" if (a + b) % 2 else "minus"
        wanted = f"{NUMBERS[a - 1]} {sign} {NUMBERS[b - 1]}"
        heard = heard_by_grammar(omni, say(omni, wanted, voice="rms").content, grammar)
        exact += heard == wanted
        if heard != wanted:
            told.append((wanted, heard))
    assert exact >= 0.9 * len(chosen), (exact, len(chosen), told)


FORMATS = {"wav": "wav", "mp3": "mp3", "flac": "flac", "opus": "ogg", "aac": "aac"}
# slt and rms begin in silence, awb in a hiss, kal16 in the sound itself.
SPOKEN = [("slt", SENTENCES[0]), ("rms", "Yes."), ("awb", SENTENCES[1]), ("kal16", "What is the capital of Japan?")]


def probed(file):
    """The stream that ffprobe finds, and the end of its last packet: heads of streams name no length."""
    probe = subprocess.run(["ffprobe", "-v", "error", "-count_packets", "-show_streams", "-show_entries", "packet=pts_time,duration_time",
                            "-of", "json", str(file)], capture_output=True, check=True, timeout=60)
    found = json.loads(probe.stdout)
    last = found["packets"][-1]
    return found["streams"][0], float(last["pts_time"]) + float(last["duration_time"])


@needs_speech
@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="ffprobe is not installed (Debian package ffmpeg)")
@pytest.mark.parametrize("fmt", FORMATS)
def test_ffprobe_finds_the_rate_the_channels_and_the_length(omni, tmp_path, fmt):
    file = tmp_path / f"a.{FORMATS[fmt]}"
    for voice, text in SPOKEN:
        pcm = say(omni, text, voice=voice, response_format="pcm", sample_rate=16000)
        for rate in (None, 24000, 44100):
            answer = say(omni, text, voice=voice, response_format=fmt, **({} if rate is None else {"sample_rate": rate}))
            if answer.status_code == 503:
                pytest.skip(answer.json()["error"]["message"])
            file.write_bytes(answer.content)
            stream, seconds = probed(file)
            assert (int(stream["sample_rate"]), stream["channels"]) == (48000 if fmt == "opus" else rate or 16000, 1)
            assert abs(seconds - len(pcm.content) / 2 / 16000) <= 0.05, (voice, rate)


def batch(tmp_path, folder, names, *how):
    """What pocketsphinx_batch hears, by name."""
    ctl, hyp = tmp_path / "names", tmp_path / "heard"
    ctl.write_text("".join(name + "\n" for name in names))
    subprocess.run(["pocketsphinx_batch", "-hmm", MODEL / "en-us", "-dict", MODEL / "cmudict-en-us.dict", *how, "-adcin", "yes", "-adchdr", "44",
                    "-cepdir", folder, "-cepext", ".wav", "-ctl", ctl, "-hyp", hyp, "-logfn", os.devnull], check=True, timeout=600)
    return {name: text for text, name in re.findall(r"^(.*) \((\S+) -?\d+\)$", hyp.read_text(), re.M)}


def transcription(file):
    return {name: words(text) for text, name in re.findall(r"<s>(.*)</s> \((\S+)\)", file.read_text())}


@needs_speech
@pytest.mark.skipif(shutil.which("pocketsphinx_batch") is None or not RECORDINGS.exists(),
                    reason="recordings to compare with are not installed (Debian packages pocketsphinx, pocketsphinx-testdata)")
@pytest.mark.parametrize("folder,text,grammar", [("librivox", "transcription", None), ("cards", "cards.transcription", "cards.gram")])
def test_recordings_are_heard_as_by_pocketsphinx_batch(omni, tmp_path, folder, text, grammar):
    """At most two words in a hundred more are wrong."""
    wanted = transcription(RECORDINGS / folder / text)
    if not EXTENDED:
        wanted = dict(list(wanted.items())[:2])
    how = ["-lm", MODEL / "en-us.lm.bin"] if grammar is None else ["-jsgf", RECORDINGS / folder / grammar]
    theirs = batch(tmp_path, RECORDINGS / folder, wanted, *how)
    ours = {}
    for name in wanted:
        audio = (RECORDINGS / folder / (name + ".wav")).read_bytes()
        ours[name] = (hear(omni, audio).json()["text"] if grammar is None
                      else heard_by_grammar(omni, audio, (RECORDINGS / folder / grammar).read_text()))
    total = sum(map(len, wanted.values()))
    wrong = [sum(errors(wanted[name], words(said[name])) for name in wanted) for said in (theirs, ours)]
    assert wrong[1] <= wrong[0] + 0.02 * total, (wrong, total, theirs, ours)
