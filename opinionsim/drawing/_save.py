"""Saving figures."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from opinionsim.drawing._captions import caption_of, root
from opinionsim.drawing._glyphs import find_glyphs
from opinionsim.errors import SpecError
from opinionsim.foundation.outputs import begins, put, require_free

#: Suffixes of the files a figure can be saved as.
FORMATS = (".png", ".svg", ".pdf")
#: Inches of the width of axes below which nothing can be read from them.
_LEAST = 0.1
#: How these files begin, and what says in their metadata that they were made here.
_MADE = {
    b"\x89PNG": b"Software\0opinionsim",
    b"<?xml": b"<dc:title>opinionsim</dc:title>",
    b"%PDF": b"/Creator (opinionsim)",
}


def is_figure(path: Path) -> bool:
    """Whether a file is a figure that :func:`save` wrote, according to its metadata."""
    return any(begins(path, start) and made in path.read_bytes() for start, made in _MADE.items())


def check_suffix(path: str | Path) -> None:
    """Reject a file name with an invalid suffix before the figure is drawn.

    Parameters
    ----------
    path : str or Path
        File that :func:`save` is to write; it is not touched.

    Raises
    ------
    SpecError
        If the suffix is not .png, .svg or .pdf; upper case is accepted.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise SpecError(f"a figure can be saved as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}; got {target.name!r}")


def require_figure(path: Path, *, caption: bool = True, force: bool = False, read: Iterable[str | Path] = ()) -> None:
    """Refuse, before the figure is drawn, to save it if that would overwrite something else.

    Parameters
    ----------
    path : Path
        File that :func:`save` is to write; nothing is written.
    caption : bool
        Whether to write its caption next to it.
    force, read
        As for :func:`opinionsim.foundation.outputs.require_free`.

    Raises
    ------
    SpecError
        If the suffix is not .png, .svg or .pdf, or saving would overwrite something that is not a figure.
    """
    check_suffix(path)
    require_free(path, is_figure, force=force, read=read)
    if caption:
        require_free(path.with_suffix(".txt"), is_caption, force=force, read=read)


def is_caption(path: Path) -> bool:
    """Whether a file is the unedited caption that :func:`save` wrote for the figure next to it."""
    mark = _mark(path.read_bytes()).encode()
    drawn = [each for each in path.parent.iterdir() if each.stem == path.stem and each.suffix.lower() in FORMATS]
    return any(is_figure(each) and mark in each.read_bytes() for each in drawn)


def _mark(caption: bytes) -> str:
    """What the metadata of a figure say of the file of its caption."""
    return f"caption {sha256(caption).hexdigest()[:16]}"


def _metadata(caption: str, suffix: str) -> dict[str, Any]:
    """Metadata of the file, under the names of its format; without dates, so that equal figures give equal files."""
    mark = _mark(f"{caption}\n".encode())
    if suffix == ".png":
        return {"Software": "opinionsim", "Description": caption, "Keywords": mark}
    if suffix == ".svg":
        return {"Creator": "opinionsim", "Description": caption, "Keywords": [mark], "Date": None}
    return {"Creator": "opinionsim", "Subject": caption, "Keywords": mark, "CreationDate": None}


def save(figure: Figure | Axes, path: str | Path, dpi: int = 150, *, caption: bool = False) -> Path:
    """Save a figure as PNG, SVG or PDF, by the suffix of the file.

    Parameters
    ----------
    figure : Figure or Axes
        Result of a plot function; for Axes, the whole figure they lie on is saved.
    path : str or Path
        File to write; its folder is created if it is missing.
    dpi : int
        Dots per inch of a PNG.
    caption : bool
        Whether to also write the caption, if there is one, next to the figure as ``NAME.txt``. Otherwise, an unedited
        caption of the figure that this one replaces is removed.

    Returns
    -------
    Path
        The file of the figure. Its metadata repeat the caption, evidence included.

    Raises
    ------
    SpecError
        If the suffix is not .png, .svg or .pdf, the file cannot be written, or the figure is too narrow for its texts.
    """
    check_suffix(path)
    target, whole = Path(path), root(figure)
    texts: list[Text] = whole.findobj(Text)
    find_glyphs(texts)
    for text in texts:
        # Names of conditions and models are data: a "$" in them must start no formula.
        if "$" in text.get_text():
            text.set_parse_math(False)
    told, beside = caption_of(whole), target.with_suffix(".txt")
    stale = beside.is_file() and is_caption(beside)
    metadata = _metadata(told, target.suffix.lower())

    def write(part: Path) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "constrained_layout not applied")
            warnings.filterwarnings("ignore", "Glyph ")
            try:
                whole.savefig(part, dpi=dpi, metadata=metadata)
                lacking = _without_room(whole)
            except UserWarning:
                lacking = "its axes do"
        if lacking:
            size = f"a figure of {25.4 * whole.get_figwidth():.0f} mm"
            raise SpecError(f"{size} is too narrow: {lacking} not fit; give a larger width or a smaller font size")

    # Type 42 fonts can be searched and edited, and journals refuse Type 3.
    with mpl.rc_context({"svg.hashsalt": "opinionsim", "pdf.fonttype": 42}):
        put(target, write)
    if caption and told:
        put(beside, partial(Path.write_text, data=f"{told}\n", encoding="utf-8", newline=""))
    elif stale:
        beside.unlink()
    return target


def _without_room(whole: Figure) -> str:
    """What of a figure that was drawn does not fit into it; empty where all does."""
    inches = whole.get_figwidth()
    if any(each.get_window_extent().width > inches * whole.dpi for each in whole.findobj(Legend)):
        return "its legend does"
    axes = [each for each in whole.axes if each.get_label() != "<colorbar>"]
    return "its axes do" if any(each.get_position().width * inches < _LEAST for each in axes) else ""
