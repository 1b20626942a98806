"""What a factory_path names, as something that runs requests."""
import importlib.util
import inspect
import os
import sys

from .edges import Edges, named
from .parts import SPEECH_FIELDS, several


def _speech_fields(declared):
    """Those of a speech request that a stage says it takes."""
    fields = [declared] if isinstance(declared, str) else list(declared)
    for field in fields:
        if field not in SPEECH_FIELDS:
            raise ValueError(f"speech_fields: there is no `{field}`; there are {', '.join(SPEECH_FIELDS)}")
    if "ref_text" in fields and "ref_audio" not in fields:
        raise ValueError("speech_fields: ref_text is said in ref_audio, which is missing")
    return fields


def _names(voices):
    """Those of a list, or a single one."""
    return [voices] if isinstance(voices, str) else [str(voice) for voice in voices]


def _is_factory(target):
    """Not a function of a part and a request."""
    parameters = list(inspect.signature(target).parameters.values())
    return len(parameters) < 2 or parameters[1].name != "request"


def _scheduler_stage(made, last, edges):
    """As one of sglang-omni's schedulers; None if it is none."""
    if not all(hasattr(made, name) for name in ("inbox", "outbox", "start", "abort")):
        return None
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "scheduler_stage.py")
    spec = importlib.util.spec_from_file_location("portico_scheduler_stage", path)
    module = sys.modules.get(spec.name)
    if module is None:
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module.SchedulerStage(made, sys.modules["portico.stage"], last, edges)


def _calls(function, parts, request, arguments, alone):
    """What a function returns that is called for each part. `alone`: nothing is computed behind a result, unless that is made
    on the way."""
    run = request._run
    for part in parts:
        run.flush()
        run.holds = False
        result = several(function(part, request, **arguments))
        run.holds = alone and isinstance(result, (tuple, list))
        yield from result


class Stage:
    """`said` is what the pipeline says of it (src/pipeline/process/process_plan.cc)."""

    def __init__(self, said, model_path=""):
        self.name, self.next = said["name"], said.get("next") or []
        factory, last = said.get("factory") or {}, not said.get("python_behind")
        edges = Edges(said)
        target = named(said["factory_path"])
        if model_path and "model_path" in inspect.signature(target).parameters:
            factory = {"model_path": model_path, **factory}
        declared = getattr(target, "speech_fields", ())
        if not inspect.isclass(target) and _is_factory(target):
            target, factory = target(**factory), {}
            target = _scheduler_stage(target, last, edges) or target
        self.voices = _names(getattr(target, "voices", ()))
        self.max_running = int(getattr(target, "max_running", 0))
        arguments = {}
        if inspect.isclass(target):
            target = target(**factory)
            target = _scheduler_stage(target, last, edges) or target
            self.voices = _names(getattr(target, "voices", self.voices))
            self.max_running = int(getattr(target, "max_running", self.max_running))
        elif not hasattr(target, "run"):
            arguments = factory
            try:
                inspect.signature(target).bind(None, None, **factory)
            except TypeError as error:
                raise TypeError(f"{said['factory_path']} cannot be called with a part, the request and the keys of `factory`: "
                                f"{error}") from None
        self.speech_fields = _speech_fields(getattr(target, "speech_fields", declared))
        whole = getattr(target, "run", None)
        if whole is None and inspect.isgeneratorfunction(target):
            whole = target
        if whole is None and edges.fed_by:
            raise ValueError(f"`{edges.fed_by[0]}` streams back to `{self.name}`, and a function that is called for each part never "
                             "ends by itself; make it a generator")
        if whole is not None:
            self.run = lambda parts, request: several(whole(parts, request, **arguments))
        else:
            self.run = lambda parts, request: _calls(target, parts, request, arguments, edges.only_pass)
        self.sees_ends = edges.sees_ends
        if getattr(target, "has_edges", False):
            self.sees_ends = True
        else:
            self.run = edges.around(self.run)
