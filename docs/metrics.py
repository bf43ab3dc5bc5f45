"""The generated part of docs/metrics.md: run ``python docs/metrics.py`` to renew it."""

from __future__ import annotations

from pathlib import Path

from opinionsim.metrics import METRICS, Metric

_START, _END = "<!-- metrics: generated from the docstrings -->\n", "<!-- metrics: end -->\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _given(metric: Metric) -> str:
    """What a metric needs, then what it may be given, with defaults."""
    options = [f"{name}={value!r}" for name, value in metric.options.items()]
    groups = ["groups=None"] if "groups" in metric.takes else []
    return ", ".join(_code(text) for text in [*sorted(metric.needs), *groups, *options])


def metrics_page() -> str:
    """Two tables in Markdown: what each metric is, and what to beware of.

    Returns
    -------
    str
        One row a metric of :data:`METRICS`, in its order.
    """
    lines = [
        "| Metric | What it tells | Definition | Values | Takes | Source |",
        "|---|---|---|---|---|---|",
    ]
    for name, metric in METRICS.items():
        source = f"[{metric.source}](https://doi.org/{metric.doi})" if metric.doi else ""
        cells = (_code(name), metric.meaning, _code(metric.formula), metric.values, _given(metric), source)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| Metric | Beware |", "|---|---|"]
    lines += [f"| {_code(name)} | {metric.pitfall} |" for name, metric in METRICS.items() if metric.pitfall]
    return "\n".join(lines) + "\n"


def renewed(page: str) -> str:
    """A page with its generated part as the registry has it."""
    before, _, rest = page.partition(_START)
    _, _, after = rest.partition(_END)
    return f"{before}{_START}\n{metrics_page()}\n{_END}{after}"


if __name__ == "__main__":
    target = Path(__file__).with_name("metrics.md")
    target.write_text(renewed(target.read_text(encoding="utf-8")), encoding="utf-8")
