"""The server as a whole: `portico omni serve` in the foreground."""
from __future__ import annotations

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import tempfile
from collections.abc import Mapping

from .process import as_flags, command_of, find_program

_SECRETS = ("api_key", "admin_api_key", "ssl_keyfile_password")


def _command(config, folder, host, port, model_name, log_level, overrides, enable_realtime, program, options) -> list[str]:
    if not enable_realtime:
        raise ValueError("enable_realtime=False: /v1/realtime is always served")
    if "allowed_media_domains" in options:  # a list, whose flag is repeated
        options = {**options, "allowed_media_domain": list(options["allowed_media_domains"] or ())}
        del options["allowed_media_domains"]
    # Not on the command line, which other users see.
    secrets = {name: str(options[name]) for name in _SECRETS if options.get(name) is not None}
    options = {name: value for name, value in options.items() if name not in _SECRETS}
    if secrets:
        if options.get("config") is not None:
            raise ValueError(f"{', '.join(secrets)}: belongs into the file that config= names")
        path = pathlib.Path(folder) / "server.yaml"  # the folder is this user's alone
        path.write_text("".join(f"{name.replace('_', '-')}: {json.dumps(value)}\n" for name, value in secrets.items()))
        options["config"] = path
    flags = as_flags({"host": host, "port": port, "served_model_name": model_name, "log_level": log_level, **options})
    return [find_program(program), *command_of(config, pathlib.Path(folder), overrides, flags)]


def launch_server(pipeline_config: str | os.PathLike | Mapping | None = None, *, host: str = "0.0.0.0", port: int = 8000,
                  model_name: str | None = None, log_level: str = "info", overrides: Mapping[str, object] | None = None,
                  enable_realtime: bool = True, program: str | os.PathLike | None = None, **options) -> None:
    """Runs the server until SIGINT or SIGTERM, and drains it then. `pipeline_config` is a file or a mapping; without it the
    bundled pipeline runs. `options` are flags of `portico omni serve`: max_queued_requests=64, allowed_local_media_path="/srv/sounds",
    allowed_media_domains=["example.org"]; keys and passwords among them are not on its command line. Raises CalledProcessError
    where the server fails. Signals are handled where this runs on the main thread."""
    with tempfile.TemporaryDirectory(prefix="portico-omni-") as folder:
        command = _command(pipeline_config, folder, host, port, model_name, log_level, overrides, enable_realtime, program,
                           options)
        asyncio.run(_run(command))


async def run_server(pipeline_config: str | os.PathLike | Mapping | None = None, *, host: str = "0.0.0.0", port: int = 8000,
                     model_name: str | None = None, log_level: str = "info", overrides: Mapping[str, object] | None = None,
                     enable_realtime: bool = True, program: str | os.PathLike | None = None, **options) -> None:
    """The same in an event loop that runs; cancelling it drains the server."""
    with tempfile.TemporaryDirectory(prefix="portico-omni-") as folder:
        await _run(_command(pipeline_config, folder, host, port, model_name, log_level, overrides, enable_realtime, program,
                            options))


async def _run(command: list[str]) -> None:
    loop = asyncio.get_running_loop()
    process, ended, caught = None, False, []

    def end():
        nonlocal ended
        ended = True
        if process:
            process.send_signal(signal.SIGTERM)

    # Before the server starts: it may answer before this coroutine goes on.
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, end)
            caught.append(number)
        except (ValueError, RuntimeError, NotImplementedError):
            pass  # not the main thread
    try:
        process = await asyncio.create_subprocess_exec(*command, start_new_session=True)
        if ended:
            end()
        status = await process.wait()
    except asyncio.CancelledError:
        if process:
            process.terminate()
            await process.wait()
        raise
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
    if status and not (ended and status == -signal.SIGTERM):  # it may not handle the signal yet
        raise subprocess.CalledProcessError(status, command)
