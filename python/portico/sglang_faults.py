"""Whose fault it is that media cannot be read: decoders have errors of all types, and say little with them."""
from __future__ import annotations

import concurrent.futures
import errno

LACKS = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)  # the machine's
MOST_CAUSES = 16


def causes(error: BaseException | None):
    """It, what it was raised from, and so on: SGLang's loaders raise errors of their own from those of decoders."""
    for _ in range(MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__


def says_nothing_of_media(error: BaseException) -> bool:
    module = type(error).__module__.partition(".")[0]
    if module == "av":  # FFmpeg's words about a file, some with the numbers of the system's errors
        return False
    if isinstance(error, (ImportError, MemoryError, concurrent.futures.BrokenExecutor)) or module == "msgspec":
        return True
    if isinstance(error, OSError) and error.errno in LACKS:
        return True
    return is_of_device(error) or type(error).__name__ == "OutOfMemoryError"


def is_of_device(error: BaseException) -> bool:
    """By its type, or by how its own words begin: what else stands in them may be quoted from a client's file."""
    if type(error).__name__ == "AcceleratorError":
        return True
    return isinstance(error, RuntimeError) and str(error).startswith(("CUDA error", "CUDA out of memory"))


def leaves_nothing(error: BaseException) -> bool:
    if isinstance(error, concurrent.futures.BrokenExecutor):
        return True
    return is_of_device(error) and not str(error).startswith(("CUDA error: out of memory", "CUDA out of memory"))


def is_ours(error: BaseException) -> bool:
    """Whether the machine lacks something, a package is not installed, SGLang's pool has gone, or SGLang's scheduler would not
    read the message."""
    return any(says_nothing_of_media(each) for each in causes(error))


def is_last(error: BaseException) -> bool:
    """Whether its process can read nothing any more: CUDA's context is lost, or the pool."""
    return any(leaves_nothing(each) for each in causes(error))
