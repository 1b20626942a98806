"""The functions that a pipeline's file names for the edges around a stage: merge_fn, route_fn and project_payload."""
import importlib

from .parts import as_part, several


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


def named(path):
    """What a dotted path of Python names."""
    module, _, attribute = path.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _function(path):
    found = named(path)
    if not callable(found):
        raise TypeError(f"{path} is no function")
    return found


class Edges:
    """`said` is what the pipeline says of the stage: next (all targets), routes (those of the file's `next`), merge_fn,
    route_fn, project_payload."""

    def __init__(self, said):
        self.targets = said.get("next") or []
        self.routes = said.get("routes") or []
        self.merge = _function(said["merge_fn"]) if said.get("merge_fn") else None
        self.route = _function(said["route_fn"]) if said.get("route_fn") else None
        self.project = {target: _function(path) for target, path in (said.get("project_payload") or {}).items()}

    to = staticmethod(To)

    def choice(self, request_id, output):
        """What route_fn chooses for this output."""
        chosen = self.route(request_id, output)
        targets = [chosen] if isinstance(chosen, str) else list(chosen or ())
        for target in targets:
            if target not in self.routes:
                raise ValueError(f"route_fn chose `{target}`, which is not in `next`")
        return Choice(targets)

    def sent(self, value):
        """A value that the stage sends, for each of its targets as it is projected for that."""
        if not self.project:
            yield value
            return
        for target in self.targets:
            project = self.project.get(target)
            for one in (value,) if project is None else several(project(value)):
                yield To(target, as_part(one))

    def merged(self, parts):
        """What merge_fn makes of {source: its parts}."""
        sources = {}
        for part in parts:
            sources.setdefault(part.source, []).append(part)
        for one in several(self.merge(sources)):
            part = as_part(one)
            part.source = ""
            yield part

    def around(self, run):
        """`run` of a stage whose parts are Portico's, with these functions."""
        if not (self.merge or self.route or self.project):
            return run

        def with_edges(parts, request):
            output = []
            for value in run(self.merged(parts) if self.merge else parts, request):
                part = as_part(value)
                if self.route:
                    output.append(part)
                yield from self.sent(part)
            if self.route:
                yield self.choice(request.id, output)
        return with_edges
