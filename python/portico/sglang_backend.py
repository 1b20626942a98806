"""Portico as a backend of `sglang serve`: SGLang computes, and Portico takes the place of its front end.

    sglang serve --model-type portico --model-path DIR [flags of Portico and of SGLang, as they come]

SGLang finds backend() by the entry point group `sglang.serve_backends` (its API version 1). The flags that Portico has
are Portico's, among them those that it passes on to SGLang itself; all others go to SGLang behind `--`, also --config, as
whose file SGLang's is meant (Portico reads what is for a front end in it). The program is the one that PORTICO_BINARY
names, or `portico` of the search path.
"""
from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys

LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sglang_launch.py")


def program() -> str:
    found = os.environ.get("PORTICO_BINARY") or shutil.which("portico")
    if not found:
        raise RuntimeError("the program `portico` is not on the search path; PORTICO_BINARY can name it")
    return found


def flags_of(help_text: str) -> dict[str, bool]:
    """The flags that a help text lists, and whether each takes a value."""
    flags = {name: bool(value) for name, value in re.findall(r"^ *(--[a-z][a-z0-9-]*)((?: |=)[^ ]+)?", help_text, re.M)}
    flags.pop("--config", None)
    return flags


def split(argv: list[str], own: dict[str, bool]) -> tuple[list[str], list[str]]:
    """Portico's words and SGLang's, each in their order."""
    mine: list[str] = []
    theirs: list[str] = []
    words = iter(enumerate(argv))
    for at, word in words:
        if word == "--":
            return mine, theirs + argv[at + 1:]
        name = word.split("=", 1)[0]
        if name not in own:
            theirs.append(word)
            continue
        mine.append(word)
        if own[name] and "=" not in word and at + 1 < len(argv):
            mine.append(next(words)[1])
    return mine, theirs


def command_line(request, own: dict[str, bool], portico: str) -> list[str]:
    mine, theirs = split(list(request.argv), own)
    if request.model_path_is_positional and request.model_path in theirs:
        theirs.remove(request.model_path)
    if request.model_path is not None and not any(w.split("=")[0] == "--model-path" for w in mine):
        mine = ["--model-path", request.model_path, *mine]
    return [portico, "serve", "--engine", "sglang", "--sglang-python", sys.executable, "--sglang-launcher", LAUNCHER,
            *mine, "--", *theirs]


def run(request) -> None:
    portico = program()
    if "-h" in request.argv or "--help" in request.argv:
        subprocess.run([portico, "serve", "--help"], check=True)
        return
    text = subprocess.run([portico, "serve", "--help"], check=True, capture_output=True, text=True).stdout
    process = subprocess.Popen(command_line(request, flags_of(text), portico))
    # Ctrl-C reaches the whole group; Portico drains, and this waits for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    if code != 0:
        sys.exit(code if code > 0 else 128 - code)


def backend():
    from sglang.cli.serve_backends import ServeBackend

    return ServeBackend(api_version=1, run=run)
