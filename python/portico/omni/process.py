"""`portico omni serve` as a child process, on a port of this machine that only its parent has the key to."""
from __future__ import annotations

import asyncio
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Mapping

from .errors import ClientError

_READY = re.compile(r" info ready: (https?)://.*:(\d+)/v1$")
_LINE = re.compile(r"^\[[^\]]*\] (debug|info|warning|error|critical) ")
_PROGRESS = re.compile(r": +\d+ %$")
_LEVELS = ("debug", "info", "warning", "error", "critical")


def find_program(program: str | os.PathLike | None = None) -> str:
    """The path of the program `portico`: given, in PORTICO_PROGRAM, or on PATH."""
    wanted = program or os.environ.get("PORTICO_PROGRAM") or "portico"
    found = shutil.which(os.fspath(wanted))
    if found is None:
        raise ClientError(f"the program {wanted} is not there: name it by program= or PORTICO_PROGRAM")
    return found


def as_flags(options: Mapping[str, object]) -> list[str]:
    """{"max_queued_requests": 64} as ["--max-queued-requests", "64"]; of a list each item has the flag before it."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
            continue
        for item in value if isinstance(value, (list, tuple)) else [value]:
            words += [flag, os.fspath(item) if isinstance(item, os.PathLike) else str(item)]
    return words


def command_of(config, folder: pathlib.Path, overrides: Mapping[str, object] | None, flags: Iterable[str]) -> list[str]:
    """What follows the program's name. A mapping is written to `folder` as the PipelineConfig's file."""
    words = ["omni", "serve"]
    if isinstance(config, Mapping):
        path = folder / "pipeline.json"
        path.write_text(json.dumps(config))
        words.append(str(path))
    elif config is not None:
        words.append(os.path.abspath(config))
    for path, value in (overrides or {}).items():
        words += ["--" + path, value if isinstance(value, str) else json.dumps(value)]
    return [*words, *flags]


class Process:
    """Ends with this process, however that ends; and with the thread that starts it, which is the event loop's."""

    def __init__(self, config, overrides, flags, program, log_level: str):
        if log_level not in _LEVELS:
            raise ValueError(f"log_level must be one of {', '.join(_LEVELS)}")
        self._config = config
        self._overrides = overrides
        self._flags = list(flags)
        self._program = find_program(program)
        self._shown = _LEVELS[_LEVELS.index(log_level):]
        self._level = min(log_level, "info", key=_LEVELS.index)  # the line `ready` is of level info
        self._last: deque[str] = deque(maxlen=20)
        self._folder: tempfile.TemporaryDirectory | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task | None = None
        self.api_key = secrets.token_hex(16)
        self.url = ""

    async def start(self, timeout: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="portico-omni-")  # of this user alone
        folder = pathlib.Path(self._folder.name)
        # Not on the command line, which other users see.
        (folder / "server.yaml").write_text(f"api-key: {self.api_key}\n")
        flags = [*self._flags, "--config", str(folder / "server.yaml"), "--host", "127.0.0.1", "--port", "0",
                 "--log-level", self._level]
        words = command_of(self._config, folder, self._overrides, flags)
        try:
            # No preexec_fn: with one Python forks, and libraries like gRPC then start threads in the child that end it.
            self._process = await asyncio.create_subprocess_exec(
                self._program, *words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, limit=1 << 20,
                env={**os.environ, "PORTICO_END_WITH": str(os.getpid())}, start_new_session=True)
        except OSError as error:
            self._remove_folder()
            raise ClientError(f"{self._program} cannot be started: {error.strerror}") from None
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.ensure_future(self._read_log(ready))
        try:
            self.url = await asyncio.wait_for(asyncio.shield(ready), timeout)
        except BaseException as error:
            await self.stop()
            if isinstance(error, asyncio.TimeoutError):
                raise ClientError(f"the pipeline is not ready after {timeout:g} s") from None
            raise
        self._remove_folder()  # it has read what is there; this process may be killed

    async def _read_log(self, ready: asyncio.Future[str]) -> None:
        """Until the process has ended. Lines below the level that is asked for are dropped."""
        while True:
            try:
                data = await self._process.stderr.readline()
            except ValueError:  # longer than the limit
                continue
            if not data:
                break
            line = data.decode(errors="replace").rstrip("\n")
            self._last.append(line)
            level = _LINE.match(line)
            kind = level[1] if level else "info" if _PROGRESS.search(line) else "critical"
            if kind in self._shown:
                print(line, file=sys.stderr, flush=True)
            found = _READY.search(line)
            if found and not ready.done():
                ready.set_result(f"{found[1]}://127.0.0.1:{found[2]}")
        status = await self._process.wait()
        if not ready.done():
            said = "; ".join(line for line in self._last if line)[-1000:]
            ready.set_exception(ClientError(f"the pipeline has ended with status {status}: {said}"))

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def ended(self) -> int | None:
        """The exit status, once it has ended."""
        return self._process.returncode if self._process else None

    async def stop(self, patience: float = 40.0) -> None:
        """Requests in flight may finish for the server's --drain-timeout."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(asyncio.shield(self._process.wait()), patience)
            except asyncio.TimeoutError:
                self._process.kill()
                await self._process.wait()
            except asyncio.CancelledError:
                self._process.kill()
                raise
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)
        self._remove_folder()

    def _remove_folder(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
