"""The frames of a log, each a page of the file as a transaction left it: where SQLite stops reading them, and why.

A frame begins with the number of its page, the size of the file if it ends a transaction (else 0), the random salt of
the log, and a check sum that goes on from that of the frame before. SQLite reads up to the first frame whose salt or
sum is wrong, says nothing of what follows, and deletes the log when it is closed.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Bytes of the head of a log, and of a frame before its page.
_LOG_HEAD, _HEAD = 32, 24
#: First four bytes of a log; the last bit says in which order of bytes it is summed.
_MAGIC = (0x377F0682, 0x377F0683)


def damaged_from(log: Path) -> int | None:
    """Byte at which a log that nobody writes is damaged, so that later transactions in it are not read; else None.

    A torn end, which a killed process leaves, is no damage: it holds no whole transaction.
    """
    with suppress(FileNotFoundError), log.open("rb") as file:
        head = file.read(_LOG_HEAD)
        if len(head) < _LOG_HEAD:
            return None
        magic, _, page_size = struct.unpack(">3I", head[:12])
        order = "<>"[magic & 1]
        if magic not in _MAGIC or _sums(head[:24], bytes(8), order) != head[24:]:
            return 0 if file.read(1) else None
        stop, unread, at_end = None, False, False
        before, salt = head[24:], head[16:24]
        for position in count(_LOG_HEAD, _HEAD + page_size):
            frame = file.read(_HEAD + page_size)
            if len(frame) < _HEAD + page_size:
                # A process that is killed while it adds the last frame of a transaction leaves a part of it.
                return stop if unread or (at_end and not frame) else None
            own = frame[8:16] == salt
            whole = own and _sums(frame[:8] + frame[_HEAD:], before, order) == frame[16:_HEAD]
            if not whole and stop is None:
                stop = position
            ends = own and any(frame[4:8])
            unread |= ends and whole and stop is not None
            at_end = ends and not whole
            before = frame[16:_HEAD]
    return None


def pages(log: Path, page_size: int) -> set[int]:
    """Numbers of the pages that a log has, also while it is written."""
    found = set[int]()
    with suppress(FileNotFoundError), log.open("rb", buffering=0) as file:
        for position in count(_LOG_HEAD, _HEAD + page_size):
            file.seek(position)
            number = file.read(4)
            if len(number) < 4:
                break
            found.add(int.from_bytes(number))
    return found


def _sums(content: bytes, before: bytes, order: str) -> bytes:
    """The check sum of SQLite's logs: for each pair of words, a += word + b, and b += word + a, to 32 bits."""
    # Commands that read a store without a log start sooner without it.
    import numpy as np

    factors = _factors(len(content) // 4)
    words = np.frombuffer(content, f"{order}u4").astype(np.uint32)
    begun = np.frombuffer(before, ">u4")[::-1].astype(np.uint32)
    return (words @ factors[1:] + begun @ factors[:2]).astype(">u4").tobytes()


@cache
def _factors(n: int) -> NDArray[np.uint32]:
    """How often each of n words enters both sums, those of the sums begun with before: Fibonacci numbers."""
    import numpy as np

    numbers = [0, 1]
    for _ in range(n):
        numbers.append(numbers[-1] + numbers[-2] & 0xFFFFFFFF)
    return np.array([(numbers[i - 1], numbers[i]) for i in range(n + 1, 0, -1)], np.uint32)
