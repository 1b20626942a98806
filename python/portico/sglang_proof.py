"""Reads frames that a front end has encoded, as SGLang's schedulers would, and compares them with what they should say."""
from __future__ import annotations

import array
import json


def plain(value):
    """A decoded message as JSON, to compare with what Portico says it sent."""
    import msgspec

    if isinstance(value, msgspec.Struct):
        return {f.name: plain(getattr(value, f.name)) for f in msgspec.structs.fields(type(value))}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(v) for v in value)
    if isinstance(value, (list, tuple, array.array)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return value


def differs(wanted, got, place: str) -> str | None:
    """Where `got` is not what `wanted` says; members that `wanted` leaves out are free."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            if key not in got:
                return f"{place}.{key} is missing"
            found = differs(value, got[key], f"{place}.{key}")
            if found:
                return found
        return None
    if type(wanted) in (int, float) and type(got) in (int, float):
        return None if wanted == got else f"{place} is {got!r}, not {wanted!r}"
    return None if wanted == got and type(wanted) is type(got) else f"{place} is {got!r}, not {wanted!r}"


def prove(line: str) -> None:
    import sglang.srt.managers.io_struct as io_struct

    for case in json.loads(line)["prove"]:
        frame = bytes.fromhex(case["frame"])
        try:
            message = io_struct._msgpack_decoder.decode(frame)
        except Exception as error:
            raise RuntimeError(f"SGLang does not read Portico's {case['tag']}: {error}") from None
        if type(message).__name__ != case["tag"]:
            raise RuntimeError(f"SGLang reads Portico's {case['tag']} as {type(message).__name__}")
        wrong = differs(case["fields"], plain(message), case["tag"])
        if wrong:
            raise RuntimeError(f"SGLang reads a request of Portico differently: {wrong}")
