"""Find fonts for names in any script, such as Chinese, Arabic or emoji, that the font of figures may lack."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from unicodedata import category

from matplotlib.font_manager import findfont, fontManager, get_font
from matplotlib.text import Text

#: Begins the name of a font that has a box for every character.
_BOXES = "Last Resort"
#: Categories of characters that are not drawn: controls, joiners, selectors of variants, spaces.
_UNSEEN = ("Cc", "Cf", "Mn", "Zl", "Zp", "Zs")


def find_glyphs(texts: Iterable[Text]) -> None:
    """Give texts fallback fonts for characters that their font lacks, and warn of characters that no font has."""
    wanted = {text: lacking for text in texts if (lacking := _lacking(text))}
    rest = set[str]().union(*wanted.values())
    found = []
    for entry in sorted(fontManager.ttflist, key=lambda each: each.name) if rest else ():
        if entry.style == "normal" and not entry.name.startswith(_BOXES):
            # A font may be damaged, or of pictures.
            with suppress(OSError, RuntimeError):
                font = get_font(entry.fname)
                known = {sign for sign in rest if ord(sign) in font.get_charmap()} if font.scalable else set()
                rest -= known
                found += [entry.name] if known else []
    for text in wanted:
        text.set_fontfamily([*text.get_fontfamily(), *found])
    if rest:
        signs = " ".join(f"{sign} (U+{ord(sign):04X})" for sign in sorted(rest))
        logging.getLogger(__name__).warning("no installed font can draw %s; install one, such as Noto Sans", signs)


def _lacking(text: Text) -> set[str]:
    """Characters of a text that its font does not have."""
    signs = {sign for sign in text.get_text() if not sign.isascii() and category(sign) not in _UNSEEN}
    known = get_font(findfont(text.get_fontproperties())).get_charmap() if signs else {}
    return {sign for sign in signs if ord(sign) not in known}
