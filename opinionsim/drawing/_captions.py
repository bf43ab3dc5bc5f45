"""Captions: texts that describe a figure outside its image, kept with the figure."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opinionsim.errors import SpecError

#: Whether captions of new figures are written into the image.
WITHIN: ContextVar[bool] = ContextVar("within", default=False)
#: The sentences kept with each figure: on its evidence, and all others.
_KEPT: WeakKeyDictionary[Figure, tuple[dict[str, None], dict[str, None]]] = WeakKeyDictionary()


def caption_of(figure: Figure | Axes) -> str:
    """Return the caption of a figure: what it shows, its source, how it was measured, and last the kind of evidence.

    Parameters
    ----------
    figure : Figure or Axes
        Result of a plot function; for axes, the whole figure they lie on.

    Returns
    -------
    str
        Sentences in one line. A figure without a caption has its titles instead, or an empty text.
    """
    whole = root(figure)
    if whole in _KEPT:
        evidence, others = _KEPT[whole]
        return " ".join({**others, **evidence})
    titles = "\n".join([whole.get_suptitle(), *(ax.get_title(loc="left") for ax in whole.axes)])
    return " ".join(sentence(line) for line in titles.replace(" \n", " ").split("\n") if line.strip())


def keep_caption(figure: Figure | Axes, lines: Iterable[str]) -> list[str]:
    """Add lines to the caption of a figure, and return the lines that its image shows.

    Parameters
    ----------
    figure : Figure or Axes
        The figure, or axes on it.
    lines : iterable of str
        The kind of evidence, then what the figure shows and what its reader needs to know, one sentence each.

    Returns
    -------
    list of str
        The kind of evidence alone; in :func:`paper` with ``caption="in"`` the sentences as well.
    """
    evidence, *others = [line for text in lines for line in text.split("\n")]
    kept = _KEPT.setdefault(root(figure), ({}, {}))
    kept[0][sentence(evidence)] = None
    kept[1].update(dict.fromkeys(sentence(line) for line in others if line.strip()))
    return [evidence, " ".join(kept[1])] if WITHIN.get() else [evidence]


def sentence(text: str) -> str:
    """A note as a sentence, with a capital at the start and a full stop at the end."""
    said = text.strip()
    return said[:1].upper() + said[1:] + ("" if said.endswith((".", "!", "?")) else ".")


def root(figure: Figure | Axes) -> Figure:
    """The whole figure of axes, also if they lie on a subfigure."""
    whole = figure if isinstance(figure, Figure) else figure.get_figure(root=True)
    if whole is None:
        raise SpecError("these axes belong to no figure, so there is nothing to save")
    return whole
