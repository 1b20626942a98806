"""The layouts of the installed SGLang's scheduler messages, as JSON.

SGLang's msgpack messages are positional, and their fields move between
releases. Portico therefore knows no positions: it reads them from what this
module prints, once at each start of the engine.

    python sglang_manifest.py            prints the manifest

Only the definitions are read, through msgspec's public introspection. It works
from 0.5.16 on, the first release whose messages are msgspec structs.
docs/sglang.md describes the format.
"""
from __future__ import annotations

import array
import enum
import inspect
import json
import os
import sys
import types
import typing


class Manifest:
    def __init__(self):
        import msgspec

        self.msgspec = msgspec
        self.structs = {}
        self.enums = {}
        self.pending = []

    def type_text(self, t) -> str:
        origin, args = typing.get_origin(t), typing.get_args(t)
        if t is None or t is type(None):
            return "nil"
        if t in (typing.Any, object) or isinstance(t, typing.TypeVar):
            return "any"
        if origin is typing.Annotated:
            return self.type_text(args[0])
        if origin is typing.Union or origin is getattr(types, "UnionType", None):
            names = dict.fromkeys(self.type_text(a) for a in args)
            ordered = [n for n in names if n != "nil"] + (["nil"] if "nil" in names else [])
            return "|".join(ordered)
        if origin is typing.Literal:
            return "literal<" + ",".join(json.dumps(a) for a in args) + ">"
        if origin in (set, frozenset) or t in (set, frozenset):
            return f"set<{self.type_text(args[0]) if args else 'any'}>"
        if origin is tuple or t is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return f"list<{self.type_text(args[0])}>"
            return "tuple<" + ",".join(self.type_text(a) for a in args) + ">"
        if origin is dict or t is dict:
            key, value = args if args else (typing.Any, typing.Any)
            return f"map<{self.type_text(key)},{self.type_text(value)}>"
        if origin is not None and issubclass(origin, typing.Sequence) or t is list:
            return f"list<{self.type_text(args[0]) if args else 'any'}>"
        return self.class_text(t)

    def class_text(self, t) -> str:
        if not inspect.isclass(t):
            return "any"
        if issubclass(t, self.msgspec.Struct):
            self.want(t)
            return f"struct:{t.__name__}"
        if issubclass(t, enum.Enum):
            self.enums[t.__name__] = {m.name: m.value for m in t}
            return f"enum:{t.__name__}"
        plain = {bool: "bool", int: "int", float: "float", str: "str", bytes: "bin", array.array: "array"}
        if t in plain:
            return plain[t]
        known = {("torch", "Tensor"): "tensor", ("numpy", "ndarray"): "ndarray"}
        # Anything else has no form on this wire; Portico refuses to write it.
        return known.get((t.__module__, t.__name__), "any")

    def json_of(self, value):
        if isinstance(value, enum.Enum):
            return value.value
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.json_of(v) for v in value]
        return {"$python": type(value).__name__}

    def default_of(self, field):
        nothing = self.msgspec.NODEFAULT
        if field.default is not nothing:
            return self.json_of(field.default)
        factory = field.default_factory
        if factory is nothing:
            return None
        return {"$factory": getattr(factory, "__qualname__", repr(factory))}

    def want(self, cls):
        if cls.__name__ not in self.structs:
            self.structs[cls.__name__] = None
            self.pending.append(cls)

    def describe(self, cls) -> dict:
        config = cls.__struct_config__
        first = 1 if config.array_like and config.tag is not None else 0
        fields = []
        for position, field in enumerate(self.msgspec.structs.fields(cls)):
            fields.append({
                "index": first + position if config.array_like else None,
                "name": field.encode_name,
                "type": self.type_text(field.type),
                "required": bool(field.required),
                "default": self.default_of(field),
            })
        return {
            "tag": config.tag,
            "array_like": bool(config.array_like),
            "omit_defaults": bool(config.omit_defaults),
            "fields": fields,
        }

    def collect(self, roots):
        for cls in roots:
            self.want(cls)
        while self.pending:
            cls = self.pending.pop()
            self.structs[cls.__name__] = self.describe(cls)


def buffer_encoding(encoder, msgspec) -> dict:
    """How the installed codec writes a buffer of each kind: "list" or "ext:CODE"."""
    import numpy
    import torch

    samples = {"array": array.array("q", [1]), "tensor": torch.ones(1), "ndarray": numpy.ones(1)}
    found = {}
    for name, sample in samples.items():
        plain = msgspec.msgpack.decode(encoder.encode(sample))
        found[name] = f"ext:{plain.code}" if isinstance(plain, msgspec.msgpack.Ext) else type(plain).__name__
    return found


def build() -> dict:
    """The manifest. Imports SGLang's message module, which takes seconds."""
    import sglang
    try:
        import msgspec
        import sglang.srt.managers.io_struct as io_struct
    except ImportError as error:
        raise RuntimeError(f"the message module of SGLang {sglang.__version__} cannot be imported: {error}") from None
    if getattr(io_struct, "_USE_PICKLE_IPC", False):
        raise RuntimeError(f"SGLang {sglang.__version__} speaks pickle in spite of SGLANG_USE_PICKLE_IPC=0")
    encoder = getattr(io_struct, "_msgpack_encoder", None)
    messages = [c for c in getattr(io_struct, "_all_types", ())
                if inspect.isclass(c) and issubclass(c, msgspec.Struct)]
    if encoder is None or not messages:
        raise RuntimeError(f"SGLang {sglang.__version__} has no msgpack messages; 0.5.16 is the first release with them")
    manifest = Manifest()
    manifest.collect(messages)
    return {
        "manifest_version": 1,
        "sglang_version": sglang.__version__,
        "msgspec_version": msgspec.__version__,
        "buffer_encoding": buffer_encoding(encoder, msgspec),
        "top_level": sorted(c.__name__ for c in messages),
        "enums": dict(sorted(manifest.enums.items())),
        "structs": dict(sorted(manifest.structs.items())),
    }


if __name__ == "__main__":
    os.environ.setdefault("SGLANG_USE_PICKLE_IPC", "0")
    saved = os.dup(1)  # SGLang's imports may print
    os.dup2(2, 1)
    text = json.dumps(build())
    sys.stdout.flush()
    os.dup2(saved, 1)
    print(text)
