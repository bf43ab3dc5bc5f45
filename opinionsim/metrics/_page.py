"""The generated part of docs/metrics.md: run ``python -m opinionsim.metrics._page docs/metrics.md`` to renew it."""

from __future__ import annotations

import sys
from pathlib import Path

from opinionsim.metrics._registry import MEASURES, Measure

__all__ = ["measures_page", "renewed"]

_START, _END = "<!-- measures: generated from the registry -->\n", "<!-- measures: end -->\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _given(measure: Measure) -> str:
    """What a measure needs, then what it may be given, with defaults."""
    options = [f"{name}={value!r}" for name, value in measure.options.items()]
    groups = ["groups=None"] if "groups" in measure.takes else []
    return ", ".join(_code(text) for text in [*sorted(measure.needs), *groups, *options])


def measures_page() -> str:
    """Two tables in Markdown: what each measure is, and what to beware of.

    Returns
    -------
    str
        One row a measure of :data:`MEASURES`, in its order.
    """
    lines = [
        "| Measure | What it tells | Definition | Values | Takes | Source |",
        "|---|---|---|---|---|---|",
    ]
    for name, measure in MEASURES.items():
        source = f"[{measure.source}](https://doi.org/{measure.doi})" if measure.doi else ""
        cells = (_code(name), measure.meaning, _code(measure.formula), measure.values, _given(measure), source)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| Measure | Beware |", "|---|---|"]
    lines += [f"| {_code(name)} | {measure.pitfall} |" for name, measure in MEASURES.items() if measure.pitfall]
    return "\n".join(lines) + "\n"


def renewed(page: str) -> str:
    """A page with its generated part as the registry has it."""
    before, _, rest = page.partition(_START)
    _, _, after = rest.partition(_END)
    return f"{before}{_START}\n{measures_page()}\n{_END}{after}"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(renewed(target.read_text(encoding="utf-8")), encoding="utf-8")
