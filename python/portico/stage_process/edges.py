"""The functions that a pipeline's file names for the edges around a stage: wait_for_fn, merge_fn, route_fn, stream_done_to_fn and
project_payload."""
import importlib

from .parts import Gathered, SourceEnd, as_part, part_bytes, several


class To:
    """A part for one of the stages behind alone."""
    __slots__ = ("target", "part")

    def __init__(self, target, part):
        self.target, self.part = target, part


class Choice:
    """Of the stages in `next`, those that get what the stage has sent."""
    __slots__ = ("targets",)

    def __init__(self, targets):
        self.targets = targets


class StreamEnds:
    """Of the stages in `stream_to`, those that are told that nothing more comes."""
    __slots__ = ("targets",)

    def __init__(self, targets):
        self.targets = targets


def named(path):
    """What a dotted path of Python names."""
    module, _, attribute = path.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _function(said, key):
    """What the file names for this key, or None."""
    if not said.get(key):
        return None
    return _callable(said[key])


def _callable(path):
    found = named(path)
    if not callable(found):
        raise TypeError(f"{path} is no function")
    return found


def _names(answer, known, function, where):
    """One name or several, of those that are known."""
    names = [answer] if isinstance(answer, str) else list(answer or ())
    for name in names:
        if name not in known:
            raise ValueError(f"{function} chose `{name}`, which is not in `{where}`")
    return names


class Early:
    """Bounds what a fan-in keeps until all that it waits for has come."""
    LIMIT = 64 << 20

    def __init__(self):
        self.bytes = 0

    def add(self, part):
        self.bytes += part_bytes(part)
        if self.bytes > self.LIMIT:
            raise RuntimeError(f"more than {self.LIMIT >> 20} MB have come before the stages of wait_for have ended")


class Waiting:
    """Whether what a fan-in waits for has come, of one request."""

    def __init__(self, edges, request):
        self.edges, self.request = edges, request
        self.ended = set()
        self.wanted = None  # what wait_for_fn has told
        self.complete = False

    def wants(self, source):
        """A stage that is waited for, as far as is known."""
        return source in self.edges.wait_for and (self.wanted is None or source in self.wanted)

    def source_ended(self, source, payload):
        """`payload()`: what the source has sent."""
        if self.edges.wait is None or not self.wants(source):
            return
        self.ended.add(source)
        if self.wanted is None:
            answer = self.edges.wait(self.request.id, source, payload())
            if answer is None:
                return
            wanted = set(_names(answer, self.edges.wait_for, "wait_for_fn", "wait_for"))
            if not self.ended <= wanted:
                raise ValueError(f"wait_for_fn chose {sorted(wanted)}, and {sorted(self.ended - wanted)} have come")
            self.wanted = wanted
            self.request._run.wait_for(wanted)
        self.complete = self.wanted <= self.ended

    def gathered(self):
        """The pipeline says that all of `wait_for` have ended that the request reaches."""
        if self.edges.wait is None:
            self.complete = True
        else:  # no end of a source comes after this
            self.check()

    def check(self):
        """Nothing more comes."""
        if self.complete:
            return
        if self.wanted is None:
            raise ValueError(f"wait_for_fn has not told which stages are waited for; {sorted(self.ended)} have come")
        raise ValueError(f"wait_for_fn chose {sorted(self.wanted - self.ended)}, which the request does not reach")


class Edges:
    """`said` is what the pipeline says of the stage: next (all targets), routes (those of the file's `next`), streams (those of its
    `stream_to`), wait_for, wait_for_fn, merge_fn, route_fn, stream_done_to_fn, project_payload, fed_by (stages that stream back to
    it), streamed_by (others that stream to it), beside (those that only stream to it, where others give it its payload), gets_payload
    (some stage has it in its `next`, or it is the first), accepts_early."""

    def __init__(self, said):
        self.targets = said.get("next") or []
        self.routes = said.get("routes") or []
        self.streams = said.get("streams") or []
        self.wait_for = said.get("wait_for") or []
        self.fed_by = said.get("fed_by") or []
        self.streamed_by = said.get("streamed_by") or []
        self.beside = said.get("beside") or []
        self.gets_payload = bool(said.get("gets_payload"))
        self.payload_first = self.gets_payload and not said.get("accepts_early")
        self.wait = _function(said, "wait_for_fn")
        self.merge = _function(said, "merge_fn")
        self.route = _function(said, "route_fn")
        self.stream_done = _function(said, "stream_done_to_fn")
        self.project = {target: _callable(path) for target, path in (said.get("project_payload") or {}).items()}
        self.sees_ends = bool(self.wait_for or self.fed_by)
        self.only_pass = not (self.sees_ends or self.route or self.stream_done or self.project)

    to = staticmethod(To)
    waiting, early = Waiting, Early
    source_end, gathered = SourceEnd, Gathered

    def choices(self, request_id, output):
        """What route_fn and stream_done_to_fn choose for this output."""
        if self.route:
            yield Choice(_names(self.route(request_id, output), self.routes, "route_fn", "next"))
        if self.stream_done:
            yield StreamEnds(_names(self.stream_done(request_id, output), self.streams, "stream_done_to_fn", "stream_to"))

    def sent(self, value):
        """A value that the stage sends, for each of its targets as it is projected for that."""
        if not self.project:
            yield value
            return
        for target in self.targets:
            project = self.project.get(target)
            for one in (value,) if project is None else several(project(value)):
                yield To(target, as_part(one))

    def in_order(self, sources):
        """What has come, by source, as `wait_for` lists them."""
        return {source: sources[source] for source in self.wait_for if source in sources}

    def merged(self, sources):
        """What merge_fn makes of {source: its parts}; without one, the parts."""
        if self.merge is None:
            for parts in sources.values():
                yield from parts
            return
        for one in several(self.merge(sources)):
            part = as_part(one)
            part.source = ""
            yield part

    def coming(self, parts, request):
        """What comes to the stage, with what is waited for merged; ends of other sources where stages stream back to this one."""
        waiting, sources, early = Waiting(self, request), {}, Early()
        merged = not self.wait_for
        for part in parts:
            if isinstance(part, Gathered):
                waiting.gathered()
            elif part.source not in self.wait_for:
                if self.fed_by or not isinstance(part, SourceEnd):
                    yield part
            elif isinstance(part, SourceEnd):
                waiting.source_ended(part.source, lambda: list(sources.get(part.source, ())))
            elif waiting.wants(part.source):
                sources.setdefault(part.source, []).append(part)
                early.add(part)
            if waiting.complete and not merged:
                merged = True
                yield from self.merged(self.in_order({source: of for source, of in sources.items() if waiting.wants(source)}))
                if self.fed_by:  # what is streamed back goes on
                    yield SourceEnd("")
        if not merged:
            waiting.check()

    def around(self, run):
        """`run` of a stage whose parts are Portico's, with these functions."""
        if self.only_pass:
            return run

        def with_edges(parts, request):
            output = []
            for value in run(self.coming(parts, request) if self.sees_ends else parts, request):
                part = as_part(value)
                if self.route or self.stream_done:
                    output.append(part)
                yield from self.sent(part)
            yield from self.choices(request.id, output)
        return with_edges
