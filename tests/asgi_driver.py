"""Calls an ASGI application as a server would, and lets tests see each event."""
import asyncio
import json


def scope(kind, path, *, method="POST", headers=(), root_path="", **more):
    named = {"host": "example.org:8000", **{name.lower(): value for name, value in headers}}
    return {"type": kind, "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": root_path + path,
            "root_path": root_path, "query_string": b"", "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in named.items()], **more}


class Called:
    """One call that runs. tell() is what the client does, next() the application's next event."""

    def __init__(self, app, called_scope):
        self._in = asyncio.Queue()
        self._out = asyncio.Queue(1)  # who does not read holds the application up
        self.task = asyncio.ensure_future(app(called_scope, self._in.get, self._out.put))

    def tell(self, kind, **fields):
        self._in.put_nowait({"type": kind, **fields})

    async def next(self, wanted=None):
        getting = asyncio.ensure_future(self._out.get())
        await asyncio.wait({getting, self.task}, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        if not getting.done():
            getting.cancel()
            if self.task.done():
                self.task.result()
            raise AssertionError("the application has sent nothing")
        event = getting.result()
        assert wanted in (None, event["type"]), event
        return event


class Http(Called):
    """A request whose body is sent in pieces of so many bytes."""

    def __init__(self, app, path, *, body=b"", json_body=None, headers=(), method="POST", piece=1 << 16, root_path=""):
        if json_body is not None:
            body, headers = json.dumps(json_body).encode(), [*headers, ("content-type", "application/json")]
        super().__init__(app, scope("http", path, method=method, headers=headers, root_path=root_path))
        for start in range(0, max(1, len(body)), piece):
            self.tell("http.request", body=body[start:start + piece], more_body=start + piece < len(body))

    async def head(self):
        start = await self.next("http.response.start")
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"]

    async def piece(self):
        """The next bytes, or None at the end."""
        event = await self.next("http.response.body")
        if not event.get("more_body", False):
            await self.task
            return event.get("body") or None
        return event["body"]

    async def all(self):
        """(status, body)"""
        status, body = await self.head(), b""
        while (piece := await self.piece()) is not None:
            body += piece
            if self.task.done():
                break
        return status, body


class Lifespan(Called):
    def __init__(self, app):
        super().__init__(app, {"type": "lifespan", "asgi": {"version": "3.0"}})

    async def __aenter__(self):
        self.tell("lifespan.startup")
        await self.next("lifespan.startup.complete")
        return self

    async def __aexit__(self, *error):
        self.tell("lifespan.shutdown")
        await self.next("lifespan.shutdown.complete")
        await self.task
