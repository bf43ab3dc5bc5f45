"""The card of a chat model, which shows how it plays an agent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from opinionsim.errors import SpecError
from opinionsim.registry import serving


def card_file(model: str, url: str = "") -> Path:
    """Path of the card of a model, ``check-MODEL.json``: next to the store, or in ``results`` without a file."""
    path = url.removeprefix("sqlite:///")
    folder = Path(path).parent if path and "://" not in path else Path("results")
    return folder / f"check-{re.sub(r'[^A-Za-z0-9._-]+', '-', model).strip('-')}.json"


def card_of(model: str, url: str = "") -> dict[str, Any] | None:
    """The card of a model, if there is one next to a store or in ``results``.

    Raises
    ------
    SpecError
        If the file with its name is not a card.
    """
    for path in (card_file(model, url), card_file(model)):
        try:
            card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if card["model"] == model:
                return card
        except FileNotFoundError:
            pass
        except (ValueError, TypeError, KeyError):
            making = "".join(f"; make one with `opinionsim {each}`" for each in serving("card"))
            raise SpecError(f"{path}: is not the card of a model{making}") from None
    return None
