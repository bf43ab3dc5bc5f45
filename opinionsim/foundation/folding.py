"""Fold texts of cells to a width: between words, then after punctuation inside a name, otherwise anywhere."""

from __future__ import annotations

import re
from textwrap import TextWrapper


class _Folder(TextWrapper):
    wordsep_simple_re = re.compile(r"(\s+|(?<=[_.=/:-])(?=[^\W\d]))")


def folded(text: str, width: int) -> list[str]:
    """Lines of a text, at most `width` characters long."""
    return _Folder(width, break_on_hyphens=False).wrap(text)


def longest_word(text: str) -> int:
    """Length of the longest part of a text that :func:`folded` does not break unless the width is smaller."""
    return max(map(len, _Folder.wordsep_simple_re.split(text)))
