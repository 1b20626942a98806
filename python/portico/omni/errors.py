"""What goes wrong between a client and its pipeline."""
from __future__ import annotations

import json


class ClientError(Exception):
    """`status` is HTTP's; `param` names the field at fault and `code` says more, where the answer does."""

    def __init__(self, message: str, status: int = 503, param: str | None = None, code: str | None = None):
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param
        self.code = code


def error_of(status: int, body: bytes) -> ClientError:
    """Of an answer in OpenAI's envelope."""
    try:
        error = json.loads(body)["error"]
        return ClientError(error["message"], status, error.get("param"), error.get("code"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ClientError(f"the answer's status is {status}", status)
