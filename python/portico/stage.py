"""Stages of a Portico pipeline, written in Python (docs/omni.md).

    # shout.py                                    # pipeline.yaml
    def shout(part, request):                     # stages:
        return part.text.upper()                  #   - {name: shout, factory_path: shout.shout, …}

`factory_path` names one of these; the keys of `factory` are keyword arguments:

- a function, called `f(part, request, **factory)` for each part; what it returns goes on: a part, a text, a NumPy
  array, several of them, or None;
- a generator function, called `f(parts, request, **factory)` once a request: it iterates over `parts` and yields;
- a function whose second parameter is not `request`: a factory, called once as `f(**factory)`; what it returns is one of
  the other kinds, or a scheduler of sglang-omni (portico/scheduler_stage.py);
- a class, made once as `C(**factory)`, with `run(self, parts, request)` (a generator or a function that returns
  something to iterate over) or `__call__(self, part, request)`. `voices` and `max_running` may be attributes.

A voice that imitates others has an attribute `speech_fields` (of the class, the function or the factory): the fields of a
speech request that it understands, of ref_audio, ref_text, references, task_type, x_vector_only_mode, token_count,
duration_tokens, initial_codec_chunk_frames. Requests with fields that no stage takes are refused.

Where a stage behind streams back to this one, it is a generator, a class with `run` or a scheduler, and ends by itself: `parts`
goes on with what is streamed back, and has a SourceEnd where another source sends no more.

Each request runs on a thread of its own. `request.aborted` tells that nobody waits any more; the next part that is
asked for or sent then raises Aborted. Raise StageError to tell the client something; what other exceptions say goes to
the log only. Parts longer than 32 KiB come and go in shared memory: Audio.numpy() and Tensor.numpy() are views of it.

The process speaks MessagePack over the Unix socket that it finds as descriptor 3 (src/pipeline/process/message.h).
Only the standard library is needed.
"""
import importlib.util
import os
import socket
import sys
import types

if __package__:
    from .stage_process.parts import (Aborted, Audio, ClipEnd, Encoded, File, Finish, Heard, Reference, Request, SourceEnd,
                                      StageError, Tensor, Text, ToolCall)
else:  # the script that a pipeline starts
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    from stage_process.parts import (Aborted, Audio, ClipEnd, Encoded, File, Finish, Heard, Reference, Request, SourceEnd,
                                     StageError, Tensor, Text, ToolCall)
    from stage_process.profile import profile
    from stage_process.worker import Worker
    del sys.path[0]

__all__ = ["Aborted", "Audio", "ClipEnd", "Encoded", "File", "Finish", "Heard", "Reference", "Request", "SourceEnd", "StageError",
           "Tensor", "Text", "ToolCall"]


def main():
    """Runs stages for the pipeline that has started this process."""
    connection = socket.socket(fileno=3)
    connection.set_inheritable(False)
    # As a script this file's folder comes first in the path, and its names would hide other packages'.
    if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
        del sys.path[0]
    this = sys.modules["__main__"]
    sys.modules["portico.stage"] = this
    try:
        found = importlib.util.find_spec("portico")
    except (ImportError, ValueError):
        found = None
    if found is None:  # the package is not installed: stages need this module alone
        package = types.ModuleType("portico")
        package.__path__ = []
        package.stage = this
        sys.modules["portico"] = package
    try:
        Worker(connection).serve()
    except OSError:
        pass  # the pipeline has ended
    profile.switch({}, "")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # whatever threads still do


if __name__ == "__main__":
    main()
