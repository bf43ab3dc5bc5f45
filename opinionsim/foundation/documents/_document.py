"""Documents that users write, with the line of each value."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.foundation.documents._parsing import KeyPath, lines_of, parse_json, parse_value

#: Longest text that is read, bytes: personas of a million people fit.
_MOST_BYTES = 256 * 2**20
#: Texts that are read in the place of files, by path.
_EDITED: dict[Path, str] = {}


@dataclass(frozen=True)
class Document:
    """A mapping that a user wrote, with the place of every value.

    Attributes
    ----------
    value : dict
        The content.
    path : Path or None
        The file it was read from; None for a mapping given in Python.
    name : str
        Name in errors of a mapping that came from no file.
    origins : tuple of (KeyPath, str)
        Key paths of values that did not come from the file, with the name of their origin; the latest wins.
    """

    value: dict[str, Any]
    path: Path | None = None
    name: str = ""
    origins: tuple[tuple[KeyPath, str], ...] = ()
    _within: KeyPath = ()
    _text: str = field(default="", repr=False, compare=False)

    @classmethod
    def of(cls, source: Document | Mapping[str, Any], name: str = "") -> Document:
        """Return a document unchanged, or turn a bare mapping into one with a name for errors."""
        return source if isinstance(source, Document) else cls(dict(source), name=name)

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return lines_of(self._text)

    def line(self, keys: Sequence[str | int]) -> int | None:
        """Line of the value at `keys` or of the nearest enclosing value, from 1; None outside a file."""
        path = (*self._within, *keys)
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)

    def locate(self, keys: Sequence[str | int] = ()) -> str:
        """Place of the value at `keys`: ``FILE:LINE``, the name of another origin, or an empty text."""
        path = tuple(keys)
        for prefix, origin in reversed(self.origins):
            if path[: len(prefix)] == prefix:
                return origin
        if self.path is None:
            return self.name
        line = self.line(path)
        return str(self.path) if line is None else f"{self.path}:{line}"

    def error(self, keys: Sequence[str | int], problem: str, code: str = "") -> SpecError:
        """An error about the value at `keys`, in the common form: place, field, problem."""
        place, spelled = self.locate(keys), spell_path(keys)
        # A place such as "--set prompts" names the field already.
        named = bool(spelled) and f" {place}".endswith(f" {spelled}")
        return SpecError(problem, (place, "" if named else spelled), code=code)

    def with_value(self, value: dict[str, Any], *origins: tuple[KeyPath, str]) -> Document:
        """A copy with other content; `origins` names the origin of changed values."""
        return replace(self, value=value, origins=(*self.origins, *origins))

    def section(self, *keys: str | int) -> Document:
        """The mapping at `keys` as a document that keeps its lines and origins."""
        value: Any = self.value
        for key in keys:
            value = value[key]
        if not isinstance(value, dict):
            raise self.error(keys, f"must be a mapping of fields; got {show_value(value)}")
        origins = tuple((path[len(keys) :], origin) for path, origin in self.origins if path[: len(keys)] == keys)
        return replace(self, value=value, origins=origins, _within=(*self._within, *keys))


def is_one_line(text: str) -> bool:
    """Whether a text has neither line breaks nor other control characters."""
    return text.isprintable() or not any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text)


def spell_path(keys: Sequence[str | int]) -> str:
    """A key path as users write it: ``measurement.texts[1]``."""
    spelled = ""
    for key in keys:
        spelled += f"[{key}]" if isinstance(key, int) else f".{key}" if spelled else key
    return spelled


def normal(text: str) -> str:
    """A text in the form for comparisons: each accented character is a single character (NFC)."""
    return unicodedata.normalize("NFC", text)


@contextmanager
def edited(path: Path, text: str) -> Iterator[None]:
    """Read a text, which is edited and not saved, in the place of a file while the block lasts."""
    _EDITED[path] = text
    try:
        yield
    finally:
        del _EDITED[path]


def read_document(path: str | Path) -> Document:
    """Read a YAML file, or a JSON file when its name ends in ``.json``.

    Parameters
    ----------
    path : str or Path
        The file; UTF-8.

    Returns
    -------
    Document
        The content, a mapping; its texts are in :func:`normal` form.

    Raises
    ------
    SpecError
        If the file is missing, unreadable, empty, not text, not valid, repeats a key, or is not a mapping.
    """
    return parse_document(normal(read_text(path)), path)


def read_text(path: str | Path) -> str:
    """The text of a file.

    Parameters
    ----------
    path : str or Path
        The file; UTF-8, with or without a byte order mark.

    Raises
    ------
    SpecError
        If the file is missing, unreadable, too long, or not text.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a text file; expected UTF-8") from None


def read_bytes(path: str | Path, most: int = _MOST_BYTES) -> bytes:
    """The content of a file.

    Parameters
    ----------
    path : str or Path
        The file.
    most : int
        Maximum number of bytes.

    Raises
    ------
    SpecError
        If the file is missing, unreadable or too long.
    """
    path = Path(path)
    if path in _EDITED:
        return _EDITED[path].encode()
    try:
        with path.open("rb") as file:  # a device has no end
            content = file.read(most + 1)
        if len(content) > most:
            raise SpecError(f"{path}: is longer than {most >> 20} MiB, the limit for text files")
        return content
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise SpecError(f"{path}: is a folder; expected a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SpecError(f"{str(path)!r}: cannot be read: {reason}") from None


def parse_document(text: str, path: str | Path) -> Document:
    """Read the text of a YAML file, or of a JSON file when its name ends in ``.json``.

    Parameters
    ----------
    text : str
        The text.
    path : str or Path
        The file of the text, for error messages; it is not opened.

    Returns
    -------
    Document
        The content, a mapping.

    Raises
    ------
    SpecError
        If the text is empty, not valid, repeats a key, or is not a mapping.
    """
    path = Path(path)
    value = parse_json(text, str(path)) if path.suffix == ".json" and text.strip() else parse_value(text, str(path))
    if value is None:
        raise SpecError(f"{path}: is empty; expected a mapping of fields")
    if not isinstance(value, dict):
        kind = "a list" if isinstance(value, list) else f"the single value {show_value(value)}"
        raise SpecError(f"{path}:1: contains {kind}; expected a mapping of fields")
    return Document(value, path, str(path), _text=text)


def show_value(value: Any, limit: int = 60) -> str:
    """A value as the user would write it, cut to a readable length."""
    if isinstance(value, str):
        text = repr(value)
    elif isinstance(value, float) and not math.isfinite(value):
        text = str(value)
    else:
        text = json.dumps(value, default=str)
    return text if len(text) <= limit else text[: limit - 1] + "…"
