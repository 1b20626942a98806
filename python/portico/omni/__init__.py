"""Pipelines of stages in a program of yours: speech, transcriptions and chat by voice (docs/omni.md).

    from portico.omni import Client, create_app, launch_server

`Client` starts `portico omni serve` as a child process, or joins one that runs, and asks it; `create_app(client)` is an ASGI
application with its routes, to be mounted in FastAPI or Starlette or run by uvicorn; `launch_server(config)` is all of it.
Only the standard library is needed.
"""
from .app import create_app
from .client import AbortResult, Client, CompletionResult, CompletionStreamChunk, SpeechResult
from .errors import ClientError
from .launch import launch_server, run_server

__all__ = ["AbortResult", "Client", "ClientError", "CompletionResult", "CompletionStreamChunk", "SpeechResult",
           "create_app", "launch_server", "run_server"]
