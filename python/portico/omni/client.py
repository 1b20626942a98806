"""A client of one pipeline, which it starts or joins."""
from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

from .errors import ClientError, error_of
from .process import Process
from .sse import events
from .wire import Connection, Response, WebSocket

CHAT = "/v1/chat/completions"
SPEECH = "/v1/audio/speech"
TRANSCRIPTIONS = "/v1/audio/transcriptions"


@dataclass
class CompletionResult:
    request_id: str
    text: str
    audio: dict | None  # id, data (base64), transcript
    finish_reason: str
    usage: dict | None


@dataclass
class CompletionStreamChunk:
    request_id: str
    text: str = ""
    modality: str = "text"
    audio_b64: str | None = None
    sample_rate: int | None = None
    finish_reason: str | None = None
    usage: dict | None = None


@dataclass
class SpeechResult:
    audio_bytes: bytes
    mime_type: str
    format: str
    sample_rate: int | None = None


@dataclass
class AbortResult:
    success: bool  # the server has taken it; who has no such request does nothing


class Client:
    """The pipeline's process starts at the first request, or with start() or `async with`; close() ends it. Requests are
    mappings with the fields of OpenAI's API, as docs/omni.md says; a `request_id` among them names one for abort(). A task
    that is cancelled, or an iterator that is closed, aborts its request.

    `config` is a PipelineConfig's file or a mapping; without it the bundled pipeline runs. `overrides` are dotted values
    ({"say.factory.voice": "rms"}), `flags` other words for `portico omni serve`. With `url` nothing is started: the server
    there is asked, with `api_key`. Use one client on one event loop."""

    def __init__(self, config: str | os.PathLike | Mapping | None = None, *, url: str | None = None,
                 api_key: str | None = None, model_name: str | None = None,
                 overrides: Mapping[str, object] | None = None, flags: Iterable[str] = (),
                 program: str | os.PathLike | None = None, log_level: str = "warning", start_timeout: float = 600.0):
        if url is not None and (config is not None or overrides or tuple(flags)):
            raise ValueError("url names a server that runs: config, overrides and flags are for one that is started")
        self.model_name = model_name
        self._url = url.rstrip("/").removesuffix("/v1") if url else None
        self._api_key = api_key
        self._start = (config, overrides, tuple(flags), program, log_level)
        self._start_timeout = start_timeout
        self._process: Process | None = None
        self._starting: asyncio.Task | None = None
        self._closed = False

    # Its life.

    async def start(self) -> None:
        """Waits until the pipeline is ready. Fails with a sentence that says what it lacks."""
        if self._closed:
            raise ClientError("the client is closed")
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._open())
        try:
            await asyncio.shield(self._starting)
        except Exception:
            self._starting = None
            raise

    async def _open(self) -> None:
        if self._url is None:
            config, overrides, flags, program, log_level = self._start
            if self.model_name is not None:
                flags = (*flags, "--served-model-name", self.model_name)
            self._process = Process(config, overrides, flags, program, log_level)
            await self._process.start(self._start_timeout)
            self._api_key = self._process.api_key
            return
        if self.model_name is not None:
            connection, response = await self._ask("GET", "/v1/models")
            try:
                models = json.loads(await response.read())["data"] if response.status == 200 else []
            finally:
                connection.close()
            names = [model["id"] for model in models]
            if self.model_name not in names:
                raise ClientError(f"the server at {self._url} serves {', '.join(names) or 'nothing'}, not {self.model_name}")

    async def close(self) -> None:
        """Ends the process that start() has started; requests in flight may finish for its --drain-timeout."""
        self._closed = True
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._process is not None:
            await self._process.stop()

    async def __aenter__(self) -> Client:
        await self.start()
        return self

    async def __aexit__(self, *error) -> None:
        await self.close()

    @property
    def started(self) -> bool:
        return self._starting is not None

    @property
    def url(self) -> str:
        return self._process.url if self._process is not None else self._url or ""

    # Any route.

    async def _ask(self, method: str, target: str, headers=(), body: bytes = b"") -> tuple[Connection, Response]:
        connection = await Connection.open(self.url)
        try:
            sent = [*headers, *self.credentials()]
            if body or method == "POST":
                sent.append(("content-length", str(len(body))))
            await connection.send_head(method, target, sent)
            await connection.send(body)
            return connection, await connection.response()
        except BaseException:
            connection.close()
            raise

    def credentials(self) -> list[tuple[str, str]]:
        return [("authorization", f"Bearer {self._api_key}")] if self._api_key else []

    async def ensure(self) -> None:
        """Ready, or a ClientError."""
        if self._starting is None or not self._starting.done() or self._closed:
            await self.start()
        if self._process is not None and self._process.ended is not None:
            raise ClientError(f"the pipeline's process has ended with status {self._process.ended}")

    @asynccontextmanager
    async def request(self, method: str, target: str, headers=(), body: bytes = b"") -> AsyncIterator[Response]:
        """Any route as it is, refusals too; its connection is closed at the end of the block."""
        await self.ensure()
        connection, response = await self._ask(method, target, headers, body)
        try:
            yield response
        finally:
            connection.close()

    @asynccontextmanager
    async def _answer(self, request: Mapping, path: str) -> AsyncIterator[Response]:
        body = json.dumps(request).encode()
        async with self.request("POST", path, [("content-type", "application/json")], body) as response:
            if response.status >= 300:
                raise error_of(response.status, await response.read())
            yield response

    async def submit(self, request: Mapping, *, path: str = CHAT) -> dict | bytes:
        """The whole answer: an object, or bytes where it is none."""
        async with self._answer(request, path) as response:
            body = await response.read()
            return json.loads(body) if response.header("content-type").startswith("application/json") else body

    async def stream(self, request: Mapping, *, path: str = CHAT) -> AsyncIterator[dict | bytes]:
        """The answer while it is made: objects of events, or bytes."""
        asked = dict(request) if path == SPEECH else {**request, "stream": True}
        async with self._answer(asked, path) as response:
            pieces = response.pieces()
            if response.header("content-type").startswith("text/event-stream"):
                pieces = events(pieces)
            async for piece in pieces:
                yield piece

    async def websocket(self, target: str, *, headers=(), protocols: Iterable[str] = ()) -> WebSocket | Response:
        """/v1/realtime or /v1/audio/speech/stream. A Response, with its body, where the server refuses."""
        await self.ensure()
        return await WebSocket.connect(self.url, target, [*headers, *self.credentials()], protocols)

    # What pipelines do.

    async def completion(self, request: Mapping, *, request_id: str | None = None) -> CompletionResult:
        asked, request_id = _named(request, request_id)
        answer = await self.submit(asked)
        choice = answer["choices"][0]
        message = choice["message"]
        audio = message.get("audio")
        text = message.get("content") or (audio or {}).get("transcript") or ""
        return CompletionResult(request_id, text, audio, choice.get("finish_reason") or "stop", answer.get("usage"))

    async def completion_stream(self, request: Mapping, *, request_id: str | None = None) -> AsyncIterator[CompletionStreamChunk]:
        asked, request_id = _named(request, request_id)
        async for event in self.stream(asked):
            usage = event.get("usage")
            for choice in event["choices"] or [{}]:
                delta = choice.get("delta") or {}
                reason = choice.get("finish_reason")
                audio = delta.get("audio") or {}
                if audio.get("data"):
                    yield CompletionStreamChunk(request_id, modality="audio", audio_b64=audio["data"],
                                                sample_rate=audio.get("sample_rate"))
                if delta.get("content") or reason or usage:
                    yield CompletionStreamChunk(request_id, text=delta.get("content") or "", finish_reason=reason, usage=usage)

    async def speech(self, request: Mapping, *, request_id: str | None = None) -> SpeechResult:
        asked, _ = _named(request, request_id)
        async with self._answer(asked, SPEECH) as response:
            rate = response.header("x-sample-rate")
            return SpeechResult(await response.read(), response.header("content-type"),
                                asked.get("response_format") or "wav", int(rate) if rate else None)

    async def speech_stream(self, request: Mapping, *, request_id: str | None = None) -> AsyncIterator[bytes]:
        """Bytes of the format that is asked for, as they are made."""
        asked, _ = _named(request, request_id)
        async for piece in self.stream(asked, path=SPEECH):
            yield piece

    async def transcription(self, file: bytes, *, filename: str = "audio", **fields) -> dict | str:
        """An object, or a text where response_format is text, srt or vtt. Fields are those of the form."""
        boundary = secrets.token_hex(16)
        parts = [(f'name="{quote(name)}"', value if isinstance(value, str) else json.dumps(value)) for name, value in fields.items()]
        body = b"".join(f"--{boundary}\r\ncontent-disposition: form-data; {name}\r\n\r\n{value}\r\n".encode() for name, value in parts)
        body += (f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{quote(filename)}"\r\n\r\n'.encode() +
                 file + f"\r\n--{boundary}--\r\n".encode())
        kind = [("content-type", f"multipart/form-data; boundary={boundary}")]
        async with self.request("POST", TRANSCRIPTIONS, kind, body) as response:
            answer = await response.read()
            if response.status >= 300:
                raise error_of(response.status, answer)
            return json.loads(answer) if response.header("content-type").startswith("application/json") else answer.decode()

    async def abort(self, request_id: str) -> AbortResult:
        await self.submit({"rid": request_id}, path="/abort_request")
        return AbortResult(True)

    async def health(self) -> dict:
        """status (healthy, degraded, unhealthy), running, and problems, a sentence each."""
        try:
            async with self.request("GET", "/health") as response:
                text = (await response.read()).decode()
                status = response.status
        except ClientError as error:
            return {"status": "unhealthy", "running": False, "problems": [error.message]}
        if status != 200:
            return {"status": "unhealthy", "running": True, "problems": [error_of(status, text.encode()).message]}
        problems = [problem for problem in text.strip().removeprefix("degraded: ").split("; ") if problem != "ok"]
        return {"status": "degraded" if problems else "healthy", "running": True, "problems": problems}

    async def admin(self, action: str, payload: Mapping | None = None) -> dict | str:
        """What operators do: "pause_generation", "continue_generation", "flush_cache", "start_profile", "stop_profile" …"""
        answer = await self.submit(payload or {}, path="/" + quote(action))
        return answer if isinstance(answer, dict) else answer.decode()


def _named(request: Mapping, request_id: str | None) -> tuple[dict, str]:
    asked = dict(request)
    if request_id is not None:
        asked["request_id"] = request_id
    return asked, asked.setdefault("request_id", secrets.token_hex(16))
