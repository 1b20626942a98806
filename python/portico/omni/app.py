"""An ASGI application with the routes of a client's pipeline (https://asgi.readthedocs.io, specification 3.0)."""
from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from contextlib import asynccontextmanager
from urllib.parse import quote, urlsplit

from .client import Client
from .errors import ClientError
from .wire import Connection, Response, WebSocket

# What serves clients; what operates the server is the client's own (Client.admin).
_ROUTES = re.compile(r"/(health|readiness|ping|version|metrics|health_generate|v1/models(/.+)?|v1/chat/completions|"
                     r"v1/completions|v1/audio/.+|v1/realtime)")
# Of one connection and not of the message (RFC 9110, 7.6.1); and what this application says itself.
_OWN = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade", "host", "authorization", "origin", "content-length", "expect"}
_KEY_PROTOCOL = "openai-insecure-api-key."


def create_app(client: Client, model_name: str | None = None, *, allowed_origins: Iterable[str] = ()) -> OmniApp:
    """Requests and answers pass through as they come; a client that leaves aborts its request.

    As an application of its own it starts the client's pipeline before it serves and ends it at shutdown. Mounted in
    another, it starts with the first request, and the other's lifespan ends it: `FastAPI(lifespan=app.lifespan)`. Access is
    the other's business: Authorization is not looked at. Web pages of other origins than the server's are refused unless
    `allowed_origins` names theirs ("*": any)."""
    if model_name is not None:
        if client.model_name not in (None, model_name):
            raise ValueError(f"the client's model is called {client.model_name}, not {model_name}")
        if client.started and client.model_name is None:
            raise ValueError("the client has started without this name: give it to Client(model_name=…)")
        client.model_name = model_name
    return OmniApp(client, allowed_origins)


class OmniApp:
    def __init__(self, client: Client, allowed_origins: Iterable[str]):
        self.client = client
        self._allowed_origins = set(allowed_origins)

    @asynccontextmanager
    async def lifespan(self, app=None):
        await self.client.start()
        try:
            yield
        finally:
            await self.client.close()

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            return await self._lifespan(receive, send)
        if scope["type"] == "http":
            return await self._http(scope, receive, send)
        if scope["type"] == "websocket":
            return await self._websocket(scope, receive, send)
        raise ValueError(f"a scope of type {scope['type']} is not known here")

    async def _lifespan(self, receive, send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                try:
                    await self.client.start()
                except ClientError as error:
                    await send({"type": "lifespan.startup.failed", "message": error.message})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif event["type"] == "lifespan.shutdown":
                await self.client.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    # HTTP

    async def _http(self, scope, receive, send) -> None:
        refusal = self._refusal(scope)
        if refusal is not None:
            return await _answer(send, *refusal)
        try:
            await self.client.ensure()
            connection = await Connection.open(self.client.url)
        except ClientError as error:
            return await _answer(send, error.status, error.message)
        started = False

        async def send_once(event):
            nonlocal started
            started = True
            await send(event)

        # Whichever ends first ends the other: the answer, or the client.
        asking = asyncio.ensure_future(self._send_request(scope, receive, connection))
        answering = asyncio.ensure_future(_send_answer(connection, send_once))
        try:
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                asking.result()  # the client has left
                return
            answering.result()
        except ClientError as error:
            if started:
                raise  # the server cuts the answer off, so that no half file looks whole
            await _answer(send, error.status, error.message)
        finally:
            connection.close()
            for task in (asking, answering):
                task.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)

    async def _send_request(self, scope, receive, connection: Connection) -> None:
        """Returns when the client has left."""
        headers = self._headers(scope)
        length = _header(scope, b"content-length")
        if length:
            headers.append(("content-length", length))
        elif _header(scope, b"transfer-encoding") or scope["method"] in ("POST", "PUT", "PATCH"):
            headers.append(("transfer-encoding", "chunked"))
        await connection.send_head(scope["method"], _target(scope), headers)
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            await connection.send(event.get("body", b""))
            if not event.get("more_body", False):
                break
        await connection.end()
        while (await receive())["type"] != "http.disconnect":
            pass

    # WebSockets

    async def _websocket(self, scope, receive, send) -> None:
        if (await receive())["type"] != "websocket.connect":
            return None
        refusal = self._refusal(scope)
        if refusal is not None:
            return await _refuse(scope, send, *refusal)
        # The key of a browser that can set no header is for whom it names; here the client's own counts.
        protocols = [name for name in scope.get("subprotocols") or [] if not name.startswith(_KEY_PROTOCOL)]
        headers = [(name, value) for name, value in self._headers(scope, credentials=False)
                   if not name.startswith("sec-websocket-")]
        try:
            upstream = await self.client.websocket(_target(scope), headers=headers, protocols=protocols)
        except ClientError as error:
            return await _refuse(scope, send, error.status, error.message)
        if isinstance(upstream, Response):
            return await _refuse(scope, send, upstream.status, None, upstream)
        await send({"type": "websocket.accept", "subprotocol": upstream.protocol or None})
        speaking = asyncio.ensure_future(_to_pipeline(receive, upstream))
        hearing = asyncio.ensure_future(_from_pipeline(upstream, send))
        try:
            done, _ = await asyncio.wait({speaking, hearing}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await upstream.close(1001)
            for task in (speaking, hearing):
                task.cancel()
            await asyncio.gather(speaking, hearing, return_exceptions=True)

    # Both

    def _headers(self, scope, credentials: bool = True) -> list[tuple[str, str]]:
        named = {name.strip().lower() for name in _header(scope, b"connection").split(",")}
        kept = []
        for name, value in scope["headers"]:
            name = name.decode("latin-1").lower()
            if name not in _OWN and name not in named and not name.startswith("sec-fetch-"):
                kept.append((name, value.decode("latin-1")))
        return kept + (self.client.credentials() if credentials else [])

    def _refusal(self, scope) -> tuple[int, str] | None:
        path = _path(scope)
        if not _ROUTES.fullmatch(path):
            return 404, f"unknown path: {scope.get('method', 'GET')} {path}"
        origin = _header(scope, b"origin")
        if not origin or "*" in self._allowed_origins or origin in self._allowed_origins:
            return None
        if urlsplit(origin).netloc == _header(scope, b"host") or _header(scope, b"sec-fetch-site") == "same-origin":
            return None
        return 403, f"pages of {origin[:200]} may not use this server"


async def _send_answer(connection: Connection, send) -> None:
    response = await connection.response()
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers
               if name not in ("connection", "transfer-encoding", "keep-alive", "date", "server")]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    async for piece in response.pieces():
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _to_pipeline(receive, upstream: WebSocket) -> None:
    while True:
        event = await receive()
        if event["type"] == "websocket.disconnect":
            return await upstream.close(event.get("code") or 1000, event.get("reason") or "")
        text = event.get("text")
        await upstream.send(text if text is not None else event["bytes"])


async def _from_pipeline(upstream: WebSocket, send) -> None:
    while True:
        kind, message = await upstream.receive()
        if kind == "close":
            code, reason = message
            code = {1005: 1000, 1006: 1011}.get(code, code)
            return await send({"type": "websocket.close", "code": code, "reason": reason})
        await send({"type": "websocket.send", "text" if kind == "text" else "bytes": message})


def _path(scope) -> str:
    """Below what this application is mounted at."""
    path, root = scope["path"], scope.get("root_path", "")
    return path[len(root):] if root and path.startswith(root + "/") else path


def _target(scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return quote(_path(scope), safe="/:@!$&'()*+,;=~-._") + ("?" + query if query else "")


def _header(scope, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == wanted), "")


def _envelope(status: int, message: str) -> bytes:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()


async def _answer(send, status: int, message: str) -> None:
    body = _envelope(status, message)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _refuse(scope, send, status: int, message: str | None, response: Response | None = None) -> None:
    """A WebSocket: with an answer where the server can give one, else by its status of 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        return await send({"type": "websocket.close", "code": 1008})
    body = response.body if response is not None else _envelope(status, message or "")
    kind = response.header("content-type") if response is not None else "application/json"
    headers = [(b"content-type", kind.encode("latin-1")), (b"content-length", str(len(body)).encode())]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
