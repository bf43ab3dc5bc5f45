"""The studies and stores of a folder, and the texts of studies with their older copies."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from opinionsim.errors import SpecError
from opinionsim.foundation.documents import read_text
from opinionsim.foundation.outputs import put

#: Suffixes of specifications, of stores, and of files that commands write.
_STUDIES, _STORES, _MADE = (".yaml", ".yml"), (".sqlite", ".sqlite3", ".db"), (".html", ".zip")
#: Suffixes of the texts beside a study that can be edited, and their most bytes.
_TEXTS, _MOST_BYTES = (".yaml", ".yml", ".csv", ".md", ".txt"), 500_000
#: How deep folders are searched, how many of them, and files that are listed at most.
_DEPTH, _MOST_FOLDERS, _MOST = 3, 2_000, 500
#: Fields of which a specification has one beside its name.
_FIELDS = re.compile(r"^(study|interaction|model|sweep)\s*:", re.MULTILINE)
_NAMED = re.compile(r"^name\s*:\s*[\"']?([\w.-]+)", re.MULTILINE)
#: Folder of older copies beside a study, and how many of each study are kept.
_OLDER, _KEPT = ".older", 50


class ChangedError(SpecError):
    """A file has changed since the page that would replace it was opened; nothing was written."""


def version_of(text: str) -> str:
    """What tells a text from others."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class Folder:
    """A folder with studies and stores, each named by its path within the folder.

    Parameters
    ----------
    root : Path
        The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._known: dict[Path, tuple[float, bool]] = {}

    def studies(self) -> dict[str, Path]:
        """Specifications of studies by name."""
        found = (path for path in self._files() if path.suffix in _STUDIES and self._is_study(path))
        return {self.name(path): path for path in found}

    def stores(self) -> dict[str, Path]:
        """Stores in files by name."""
        # No file is opened: closing it would end SQLite's locks of this process on it.
        return {self.name(path): path for path in self._files() if path.suffix in _STORES and path.stat().st_size}

    def study(self, name: str) -> Path:
        """The file of a study.

        Raises
        ------
        SpecError
            If the folder has no such study.
        """
        # A mistake in the text must not hide it.
        texts = {self.name(path): path for path in self._files() if path.suffix in _STUDIES}
        return _among(texts, name, "study")

    def beside(self, study: Path) -> dict[str, Path]:
        """The texts of a study by name: its specification, and files beside it such as topic and personas."""
        files = sorted(each for each in study.parent.iterdir() if each.suffix in _TEXTS and each.name[0] != ".")
        small = [each for each in files if _shown(each) and each.stat().st_size < _MOST_BYTES]
        return {each.name: each for each in (study, *small)}

    def made(self, name: str) -> Path:
        """A file that a command wrote for a study, such as a report.

        Raises
        ------
        SpecError
            If the folder has no such file.
        """
        path = (self.root / name).resolve()
        inside = path.is_relative_to(self.root) and path.parent.name == "results" and path.suffix in _MADE
        return _among({name: path} if inside and path.is_file() else {}, name, "file")

    def store_of(self, study: Path) -> Path:
        """The store that ``run`` uses for a study in its own folder, whether it exists or not."""
        found = _NAMED.search(read_text(study))
        return study.parent / "results" / f"{found[1] if found else study.stem}.sqlite"

    def name(self, path: Path) -> str:
        """The name of a file of the folder."""
        return path.relative_to(self.root).as_posix()

    def _files(self) -> Iterator[Path]:
        """Studies and stores that are not hidden, in order.

        Texts that are too long for a page are left out.
        """
        found = 0
        for place, folders, files in islice(os.walk(self.root), _MOST_FOLDERS):
            at = Path(place)
            deep = len(at.relative_to(self.root).parts)
            folders[:] = sorted(name for name in folders if name[0] != "." and deep < _DEPTH)
            for name in sorted(files):
                path = at / name
                if name[0] == "." or found >= _MOST or not _shown(path):
                    continue
                if path.suffix in _STORES or (path.suffix in _STUDIES and path.stat().st_size < _MOST_BYTES):
                    found += 1
                    yield path

    def _is_study(self, path: Path) -> bool:
        """Whether a file has the fields of a specification, also one with mistakes; looked up once a change."""
        try:
            changed = path.stat().st_mtime
            if self._known.get(path, (0.0, False))[0] != changed:
                text = read_text(path)
                is_study = bool(_NAMED.search(text) and _FIELDS.search(text))
                self._known[path] = changed, is_study or bool(older_copies(path))
        except (OSError, SpecError):
            return False
        return self._known[path][1]


def _shown(path: Path) -> bool:
    """Whether a page can show a file: pipes and devices never end, and an address cannot hold every name."""
    return str(path).isprintable() and path.is_file()


def _among(files: Mapping[str, Path], name: str, what: str) -> Path:
    if name not in files:
        raise SpecError(f"There is no {what} {name!r:.80} in this folder.")
    return files[name]


def save(path: Path, text: str, known: str) -> None:
    """Save the text of a study, and keep the former one as an older copy.

    Parameters
    ----------
    path : Path
        The file.
    text : str
        Its new text.
    known : str
        Version of the text that the page was made from.

    Raises
    ------
    ChangedError
        If the file has another text by now.
    SpecError
        If it cannot be written.
    """
    before = read_text(path)
    if version_of(before) not in (known, version_of(text)):
        raise ChangedError(f"{path.name} was changed elsewhere after this page was opened, so nothing was saved.")
    if before == text:
        return
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    older = path.parent / _OLDER / f"{path.stem}.{stamp}-{version_of(before)}{path.suffix}"
    put(older, lambda part: part.write_text(before, encoding="utf-8"))
    put(path, lambda part: part.write_text(text, encoding="utf-8"))
    for each in list(older_copies(path).values())[_KEPT:]:
        each.unlink(missing_ok=True)


def older_copies(path: Path) -> dict[str, Path]:
    """Older copies of a study by the time until which they held, the latest first."""
    found = sorted((path.parent / _OLDER).glob(f"*{path.suffix}"), reverse=True)
    return {
        each.name.removeprefix(f"{path.stem}.").removesuffix(path.suffix): each
        for each in found
        if re.fullmatch(rf"{re.escape(path.stem)}\.\d{{4}}(-\d\d){{2}}-\d{{6}}-\w{{16}}", each.stem)
    }
