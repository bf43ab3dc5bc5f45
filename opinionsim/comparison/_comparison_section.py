"""The comparison with classic models on a page of results: a form that starts it, and what the last one has found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from opinionsim.comparison._candidates import DEFAULT
from opinionsim.comparison._comparison_tables import comparison_tables
from opinionsim.comparison._updates import events
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.spreadsheets import read_csv, write_csv
from opinionsim.foundation.templates import filled
from opinionsim.registry import names
from opinionsim.store import Results

if TYPE_CHECKING:
    from opinionsim.studio import PageAddress

#: Most bytes of a file that is shown.
_MOST_BYTES = 30_000_000
#: Frames that are shown, with their columns of texts, which are empty where a file has nothing.
_SHOWN = {"findings": ["best", "ties", "why"], "scores": [], "fits": ["reason"], "trust": []}
#: Noise as the command takes it.
_NOISE = re.compile(r"(audit|[\d.]+(,[\d.]+){0,2})?")


def _place(asked: PageAddress) -> Path:
    """The folder of frames beside a store; its figure has the same name."""
    store = Path(asked.url.removeprefix("sqlite:///"))
    return store.with_name(f"{store.stem}-compare")


def section(results: Results, asked: PageAddress) -> str:
    """The form and the findings; nothing where no agent that is measured reads another."""
    place = _place(asked)
    made, drawn = (place / "findings.csv").exists(), place.with_suffix(".svg")
    if not results.run_ids or asked.query.get("instrument") or not (made or asked.may_write):
        return ""
    if not results.counted()[3]["reads"].map(len).any():
        return ""
    told: dict[str, Any] = {"figure": drawn.stat().st_mtime_ns if made and drawn.exists() else ""}
    try:
        if made:
            now = {*str(write_csv(events(results))).splitlines()}
            then = {*_text(place / "events.csv").splitlines()}
            # Runs that are chosen are some of those that were compared.
            told |= {"old": not now <= then if asked.where else now != then, "found": (found := _frames(place))}
            told |= {"tables": comparison_tables(found)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        told |= {"found": None, "problem": f"The comparison in {place.name} cannot be read; compare again."}
    except (SpecError, MeasurementError) as error:
        told |= {"found": None, "problem": str(error)}
    models = {name: name in DEFAULT for name in (*DEFAULT, *names("classic_model"))}
    return filled("opinionsim.comparison", "comparison_section.html", asked=asked, models=models, **told)


def _text(path: Path) -> str:
    if path.stat().st_size > _MOST_BYTES:
        raise SpecError(f"{path.name} has more than {_MOST_BYTES // 10**6} MB, so the comparison is not shown here.")
    return path.read_text(encoding="utf-8")


def _frames(place: Path) -> SimpleNamespace:
    """The frames of a comparison that were saved."""
    found = SimpleNamespace()
    for name, texts in _SHOWN.items():
        _text(path := place / f"{name}.csv")
        frame = read_csv(path, dtype={"cell": str})
        setattr(found, name, frame.assign(**{column: frame[column].fillna("") for column in texts}))
    return found


def picture(results: Results, asked: PageAddress, name: str) -> tuple[str, str]:
    """The figure that the last comparison has drawn, and its caption."""
    drawn = _place(asked).with_suffix(".svg")
    if not drawn.exists():
        raise SpecError("No comparison has drawn a figure yet.")
    caption = drawn.with_suffix(".txt")
    return _text(drawn), _text(caption) if caption.exists() else ""


def act(asked: PageAddress, given: Mapping[str, str]) -> dict[str, Any]:
    """Start a comparison with the models and the noise of the form."""
    models = [name for name in names("classic_model") if f"model.{name}" in given]
    noise = given.get("noise", "").replace(" ", "")
    if not models:
        raise SpecError("Choose at least one model.")
    if not _NOISE.fullmatch(noise):
        raise SpecError("The noise is a rate, a rate with the ends of its interval as in 0.1,0.05,0.2, or audit.")
    place = _place(asked)
    told = {"models": ",".join(models), "noise": noise, "design": asked.design}
    told |= {"experiment": asked.query.get("experiment")}
    options = [f"--{name}={value}" for name, value in told.items() if value]
    files = ["--csv", str(place), "--plot", str(place.with_suffix(".svg")), "--force"]
    return {"command": ["compare", asked.url, *files, *options]}
