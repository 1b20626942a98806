"""SGLang's messages as msgspec structs, made from a manifest (python/portico/sglang_manifest.py)."""
import array
import json
import re
import struct
import typing

import msgspec


class Wire:
    """msgspec structs made from a manifest, and SGLang's two forms of buffers."""

    def __init__(self, manifest):
        self.manifest = manifest
        self.structs = {}
        names = manifest["structs"]
        while len(self.structs) < len(names):  # a struct is made once those in it are
            ready = [n for n in names if n not in self.structs and self.parts(names[n]) <= self.structs.keys()]
            assert ready, "the structs of the manifest contain each other"
            for name in ready:
                self.structs[name] = self.make(name, names[name])
        messages = [self.structs[n] for n in manifest["top_level"]]
        self.decoder = msgspec.msgpack.Decoder(typing.Union[tuple(messages)], dec_hook=self.decode_hook,
                                               ext_hook=self.ext_hook)
        self.encoder = msgspec.msgpack.Encoder(enc_hook=self.encode_hook)

    @staticmethod
    def parts(layout):
        return {name for f in layout["fields"] for name in re.findall(r"struct:(\w+)", f["type"])}

    def make(self, name, layout):
        fields = []
        for f in layout["fields"]:
            kind = self.type_of(f["type"])
            if f["required"]:
                fields.append((f["name"], kind))
            elif isinstance(f["default"], dict):
                factory = {"list": list, "dict": dict}.get(f["default"]["$factory"], str)
                fields.append((f["name"], kind, msgspec.field(default_factory=factory)))
            else:
                fields.append((f["name"], kind, f["default"]))
        return msgspec.defstruct(name, fields, tag=layout["tag"], array_like=layout["array_like"],
                                 omit_defaults=layout["omit_defaults"], kw_only=True)

    def type_of(self, text):
        kind, rest = self.union(text)
        assert not rest, text
        return kind

    def union(self, text):
        kinds = []
        while True:
            kind, text = self.one(text)
            kinds.append(kind)
            if not text.startswith("|"):
                break
            text = text[1:]
        # Unions that msgspec does not allow (several kinds of arrays) are rare and not what is tested here.
        arrays = [k for k in kinds if k is array.array or typing.get_origin(k) in (list, set, tuple)]
        if len(arrays) > 1:
            kinds = [typing.Any]
        return (typing.Union[tuple(kinds)] if len(kinds) > 1 else kinds[0]), text

    def one(self, text):
        word = re.match(r"[\w:]+", text)[0]
        rest = text[len(word):]
        plain = {"nil": None, "bool": bool, "int": int, "float": float, "str": str, "bin": bytes, "any": typing.Any,
                 "array": array.array, "tensor": typing.Any, "ndarray": typing.Any}
        if word in plain:
            return plain[word], rest
        if word.startswith("struct:"):
            return self.structs[word[7:]], rest
        if word.startswith("enum:"):
            return typing.Literal[tuple(self.manifest["enums"][word[5:]].values())], rest
        if word == "literal":
            body, rest = rest[1:].split(">", 1)
            return typing.Literal[tuple(json.loads(f"[{body}]"))], rest
        parts = []
        rest = rest[1:]
        while True:
            kind, rest = self.union(rest)
            parts.append(kind)
            if rest[0] == ">":
                break
            rest = rest[1:]
        made = {"list": list, "set": set, "map": dict, "tuple": tuple}[word]
        return made[tuple(parts)] if len(parts) > 1 else made[parts[0]], rest[1:]

    @staticmethod
    def decode_hook(kind, value):
        if kind is array.array:
            if isinstance(value, array.array):
                return value
            typecode, items = value
            return array.array(typecode, items)
        raise NotImplementedError(kind)

    @staticmethod
    def ext_hook(code, data):
        assert code == 1, f"no extension {code} in tests"
        size, = struct.unpack(">I", data[:4])
        return array.array(msgspec.msgpack.decode(data[4:4 + size]), bytes(data[4 + size:]))

    @staticmethod
    def encode_hook(value):
        if isinstance(value, array.array):
            meta = msgspec.msgpack.encode(value.typecode)
            return msgspec.msgpack.Ext(1, struct.pack(">I", len(meta)) + meta + value.tobytes())
        raise NotImplementedError(type(value))
