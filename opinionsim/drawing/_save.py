"""Saving figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from opinionsim.errors import SpecError
from opinionsim.foundation.outputs import begins, put

#: Suffixes of the files a figure can be saved as.
FORMATS = (".png", ".svg", ".pdf")
#: How these files begin, and what says in their metadata that they were made here.
_MADE = {
    b"\x89PNG": b"Software\0opinionsim",
    b"<?xml": b"<dc:title>opinionsim</dc:title>",
    b"%PDF": b"/Creator (opinionsim)",
}


def is_figure(path: Path) -> bool:
    """Whether a file is a figure that :func:`save` wrote, as its metadata say."""
    return any(begins(path, start) and made in path.read_bytes() for start, made in _MADE.items())


def check_suffix(path: str | Path) -> None:
    """Refuse a file name that a figure cannot be saved under, before any work is done for it.

    Parameters
    ----------
    path : str or Path
        File that :func:`save` is to write; it is not touched.

    Raises
    ------
    SpecError
        If the suffix is not .png, .svg or .pdf; upper case will do.
    """
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise SpecError(f"a figure can be saved as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}; got {target.name!r}")


def _root(figure: Figure | Axes) -> Figure:
    """The whole figure of axes, also if they lie on a subfigure."""
    whole = figure if isinstance(figure, Figure) else figure.get_figure(root=True)
    if whole is None:
        raise SpecError("these axes lie on no figure, so there is nothing to save")
    return whole


def _metadata(figure: Figure, suffix: str) -> dict[str, Any]:
    """Metadata of the file, under the names of its format; without dates, so that equal figures give equal files."""
    stated = [figure.get_suptitle(), *(ax.get_title(loc="left") for ax in figure.axes)]
    description = " | ".join(text.replace(" \n", " ").strip().replace("\n", "; ") for text in stated if text)
    if suffix == ".png":
        return {"Software": "opinionsim", "Description": description}
    if suffix == ".svg":
        return {"Creator": "opinionsim", "Description": description, "Date": None}
    return {"Creator": "opinionsim", "Subject": description, "CreationDate": None}


def save(figure: Figure | Axes, path: str | Path, dpi: int = 150) -> Path:
    """Save a figure as PNG, SVG or PDF, by the suffix of the file.

    Parameters
    ----------
    figure : Figure or Axes
        Result of a plot function; for Axes, the whole figure they lie on is saved.
    path : str or Path
        File to write; its folder is made when missing.
    dpi : int
        Dots per inch of a PNG.

    Returns
    -------
    Path
        The file written. Its metadata repeats the titles, evidence included.

    Raises
    ------
    SpecError
        If the suffix is not .png, .svg or .pdf, or the file cannot be written.
    """
    check_suffix(path)
    target = Path(path)
    whole = _root(figure)
    for text in whole.findobj(Text):
        # Names of conditions and models are data: a "$" in them must start no formula.
        if "$" in text.get_text():
            text.set_parse_math(False)
    # Type 42 fonts can be searched and edited, and journals refuse Type 3.
    with mpl.rc_context({"svg.hashsalt": "opinionsim", "pdf.fonttype": 42}):
        put(target, partial(whole.savefig, dpi=dpi, metadata=_metadata(whole, target.suffix.lower())))
    return target
