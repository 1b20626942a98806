"""One question with its answer, and the rule that keeps some questions out of training."""

import zlib
from dataclasses import dataclass, field


@dataclass
class Turn:
    user: str
    answer: str
    think: str = ""  # what think mode says before the answer
    key: str = ""  # what the question asks and how; turns with an empty key are never held back
    accept: tuple = ()  # further right answers
    exact: bool = False  # the answer copies from the question, so its letters must not be changed
    messages: list = field(default_factory=list)  # tool use: replaces user and answer


def held_back(turn: Turn) -> bool:
    """One question in twenty is never trained on. The choice hangs on the key alone."""
    return bool(turn.key) and zlib.crc32(turn.key.encode()) % 20 == 0
