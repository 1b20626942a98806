"""HTTP/1.1 and WebSockets to one server, as its client: bodies go through as they come, with nothing gathered."""
from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import ssl
import struct
from collections.abc import AsyncIterator, Iterable
from urllib.parse import urlsplit

from .errors import ClientError

_PIECE = 64 << 10
_MAX_HEAD = 64 << 10
_MAX_MESSAGE = 32 << 20
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Headers = Iterable[tuple[str, str]]


class Response:
    def __init__(self, reader: asyncio.StreamReader, status: int, headers: list[tuple[str, str]], has_body: bool):
        self._reader = reader
        self.status = status
        self.headers = headers
        self._has_body = has_body
        self.body = b""  # of a refused WebSocket

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Who does not go on holds the server up."""
        if not self._has_body:
            return
        if "chunked" in self.header("transfer-encoding").lower():
            async for piece in self._chunks():
                yield piece
            return
        length = self.header("content-length")
        left = int(length) if length else None
        while left is None or left > 0:
            piece = await self._reader.read(_PIECE if left is None else min(_PIECE, left))
            if not piece:
                if left is None:
                    return
                raise ClientError("the answer was cut off", 502)
            if left is not None:
                left -= len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            left = int((await _line(self._reader)).split(b";")[0], 16)
            if left == 0:
                while await _line(self._reader):
                    pass
                return
            while left > 0:
                piece = await self._reader.read(min(_PIECE, left))
                if not piece:
                    raise ClientError("the answer was cut off", 502)
                left -= len(piece)
                yield piece
            await _line(self._reader)

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n"))[:-2]
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise ClientError("the answer was cut off", 502) from None


class Connection:
    """One request and its answer; closing it before its end aborts the request at the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str):
        self._reader = reader
        self._writer = writer
        self._host = host
        self._chunked = False
        self._method = ""

    @classmethod
    async def open(cls, url: str) -> Connection:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        try:
            reader, writer = await asyncio.open_connection(
                parts.hostname, port, limit=_MAX_HEAD, ssl=ssl.create_default_context() if secure else None)
        except OSError as error:
            raise ClientError(f"the pipeline cannot be reached: {error.strerror or error}") from None
        return cls(reader, writer, f"[{parts.hostname}]:{port}" if ":" in (parts.hostname or "") else
                   f"{parts.hostname}:{port}")

    async def send_head(self, method: str, target: str, headers: Headers) -> None:
        """With `transfer-encoding: chunked` among the headers, send() makes chunks."""
        lines = [f"{method} {target} HTTP/1.1", f"host: {self._host}"]
        for name, value in headers:
            if any(c in "\r\n\0" for c in name + value):
                raise ClientError("a header has a line break", 400)
            self._chunked = self._chunked or name == "transfer-encoding"
            lines.append(f"{name}: {value}")
        self._method = method
        await self._write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def send(self, body: bytes) -> None:
        if body:
            await self._write(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)

    async def end(self) -> None:
        if self._chunked:
            await self._write(b"0\r\n\r\n")

    async def response(self) -> Response:
        while True:
            try:
                head = await self._reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
                raise ClientError("the pipeline has closed the connection", 502) from None
            first, *lines = head[:-4].decode("latin-1").split("\r\n")
            status = int(first.split(" ", 2)[1])
            headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
            if status >= 200 or status == 101:
                has_body = self._method != "HEAD" and status not in (101, 204, 304)
                return Response(self._reader, status, headers, has_body)

    async def _write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            pass  # its answer, if there is one, says why

    def close(self) -> None:
        self._writer.close()


class WebSocket:
    """One that is open. Messages are ("text", str), ("binary", bytes) and, last, ("close", (code, reason))."""

    def __init__(self, connection: Connection, protocol: str):
        self._connection = connection
        self._reader = connection._reader
        self.protocol = protocol
        self._closed = False

    @classmethod
    async def connect(cls, url: str, target: str, headers: Headers, protocols: Iterable[str] = ()) -> WebSocket | Response:
        """A Response where the server refuses."""
        connection = await Connection.open(url)
        try:
            key = base64.b64encode(os.urandom(16)).decode()
            more = [("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-version", "13"),
                    ("sec-websocket-key", key)]
            offered = ", ".join(protocols)
            if offered:
                more.append(("sec-websocket-protocol", offered))
            await connection.send_head("GET", target, [*headers, *more])
            response = await connection.response()
            if response.status != 101:
                response.body = await response.read()
                connection.close()
                return response
            accept = base64.b64encode(hashlib.sha1(key.encode() + _GUID).digest()).decode()
            if response.header("sec-websocket-accept") != accept:
                raise ClientError("what answers is no WebSocket", 502)
            return cls(connection, response.header("sec-websocket-protocol"))
        except BaseException:
            connection.close()
            raise

    async def send(self, message: str | bytes) -> None:
        if isinstance(message, str):
            await self._frame(0x1, message.encode())
        else:
            await self._frame(0x2, message)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        if not self._closed:
            self._closed = True
            if code not in (1005, 1006, 1015):  # which are no codes to send (RFC 6455, 7.4.1)
                await self._frame(0x8, struct.pack(">H", code) + reason.encode()[:123])
        self._connection.close()

    async def receive(self) -> tuple[str, object]:
        kind, gathered = 0, b""
        while True:
            try:
                final, opcode, data = await self._read_frame(_MAX_MESSAGE - len(gathered))
            except (asyncio.IncompleteReadError, ConnectionError):
                return "close", (1006, "")
            if opcode == 0x8:
                code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
                return "close", (code, data[2:].decode(errors="replace"))
            if opcode == 0x9:
                await self._frame(0xA, data)
            elif opcode in (0x0, 0x1, 0x2):
                kind = opcode or kind
                gathered += data
                if final:
                    return ("text", gathered.decode()) if kind == 0x1 else ("binary", gathered)

    async def _read_frame(self, most: int) -> tuple[bool, int, bytes]:
        first, second = await self._reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            length = struct.unpack(">H", await self._reader.readexactly(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", await self._reader.readexactly(8))[0]
        if second & 0x80 or length > most:
            raise ClientError("the pipeline has sent a frame that cannot be", 502)
        return bool(first & 0x80), first & 0xF, await self._reader.readexactly(length)

    async def _frame(self, opcode: int, data: bytes) -> None:
        mask = os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | opcode, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack(">BBH", 0x80 | opcode, 0xFE, size)
        else:
            head = struct.pack(">BBQ", 0x80 | opcode, 0xFF, size)
        key = int.from_bytes(mask * (size // 4 + 1), "big") >> (8 * (4 - size % 4)) if size else 0
        masked = (int.from_bytes(data, "big") ^ key).to_bytes(size, "big") if size else b""
        await self._connection._write(head + mask + masked)
