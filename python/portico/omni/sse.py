"""Server-sent events out of pieces of a body."""
from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator

from .errors import ClientError

_MAX_EVENT = 16 << 20


async def events(pieces: AsyncIterable[bytes]) -> AsyncIterator[dict]:
    """The objects behind `data:`, up to [DONE] or the end. An event that tells of an error raises it."""
    held = b""
    async for piece in pieces:
        held += piece
        *whole, held = held.split(b"\n\n")
        if len(held) > _MAX_EVENT:
            raise ClientError("an event of the answer is too large", 502)
        for event in whole:
            data = b"\n".join(line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:"))
            if data == b"[DONE]":
                return
            if not data:
                continue
            value = json.loads(data)
            if isinstance(value, dict) and (value.get("type") == "error" or ("error" in value and "choices" not in value)):
                error = value["error"]
                code = error.get("code")
                raise ClientError(error.get("message", "the stream has failed"), 500, error.get("param"), code)
            yield value
