"""What is said of a study in words: its design, what its tables say, how it was done, and what to keep in mind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from opinionsim.analysis import Table, headings, number_text, p_text, point_axes, spell_all
from opinionsim.evidence import played_by, validation_statement
from opinionsim.metrics import METRICS, condition_axes, order_levels
from opinionsim.report._templates import WORDS, templates
from opinionsim.store import Results

#: Most levels that are listed one by one, and most conditions that a sentence is made of.
_LISTED, _TOLD = 16, 24
#: How labels of what varies begin.
VARIED = "Varied: "
#: Kinds of evidence of which nothing is found, since a scripted stand-in is or may be among the authors.
_NO_FINDING = frozenset({"scripted", "mixed"})


def design(results: Results) -> dict[str, str]:
    """The design in words, by labels; nothing is said of what the design does not have."""
    swept, spec = results.swept, results.spec
    frame = results.points if swept else results.ordered_runs
    states = frame["error"].eq("").map({True: "complete", False: "failed"}) if swept else frame["status"]
    counts = (states if swept else states[~frame["run_id"].duplicated()]).value_counts()
    told = {"Runs": f"{counts.sum()} ({', '.join(f'{number} {state}' for state, number in counts.items())})"}
    if len(results.designs) > 1:
        told["Design"] = f"number {results.design} of {len(results.designs)} under this name"
    axes = point_axes(frame) if swept else condition_axes(frame)
    for axis, name in zip(axes, headings(axes), strict=True):
        told[f"{VARIED}{name}"] = listed(order_levels(frame[axis]))
    if swept:
        attrs = frame.attrs
        told |= {"Model": attrs["model"], "Steps": str(attrs["steps"])}
        told |= {name.capitalize(): spell_all(attrs.get(name, {})) for name in ("parameters", "scheme")}
    else:
        told |= {
            label: listed(each for each in order_levels(frame[name]) if each)
            for label, name in WORDS["columns"].items()
            if name not in axes
        }
        told |= {"Personas": listed(_personas(results)), "Surveys": listed(results.manifest["contents"]["surveys"])}
        told["Measured"] = "; ".join(_instruments(results.opinions))
    for label, path in WORDS["fields"].items():
        # What is varied is told already, and of people on record no opinion is assigned.
        if f"{VARIED}{label.lower()}" in told or (path.startswith("population.") and _on_record(results)):
            continue
        node: Any = spec
        for name in path.split("."):
            node = node.get(name) if isinstance(node, Mapping) else None
        if node is not None and not told.get(label):
            told[label] = spell_all({"": node}).removeprefix("=")
    return {label: what for label, what in told.items() if what}


def _on_record(results: Results) -> bool:
    """Whether all who take part are people on record, or stand in for them."""
    return not results.swept and set(results.runs["interaction"]) <= {"recorded", "twins"}


def _personas(results: Results) -> Mapping[str, Any]:
    """The sets of personas that agents play, by name."""
    personas: Mapping[str, Any] = results.manifest.get("contents", {}).get("personas", {})
    return {} if _on_record(results) else personas


def _instruments(opinions: pd.DataFrame) -> Iterator[str]:
    """What each instrument measures, by what, on which texts and scale."""
    columns = ["variable", "classifier", "scale"]
    for names, own in opinions[[*columns, "kind"]].drop_duplicates().groupby(columns, sort=False):
        variable, classifier, scale = map(str, names)
        points = scale.replace(",", ", ").replace("-", "\N{MINUS SIGN}")
        yield f"{variable} by {classifier} on the points {points}, of texts of kind {listed(own['kind'])}"


def listed(values: Iterable[Any]) -> str:
    """Values in words; of many, their number and the first and last."""
    found = [str(value) for value in values]
    return ", ".join(found) if len(found) <= _LISTED else f"{len(found)} in all: {found[0]}, ..., {found[-1]}"


# -- what tables say -----------------------------------------------------------------------------------------


def statements(tables: Iterable[Table]) -> Iterator[str]:
    """Sentences of numbers of tables; none of rows in which a scripted stand-in is, or may be, among the authors."""
    for table in tables:
        say, rows = _SENTENCES.get(table.name), table.frame.to_dict("records")
        if say is not None and len(rows) <= _TOLD:
            told = zip(_labels(table), rows, strict=False)
            yield from filter(None, (say(name, row) for name, row in told if row.get("evidence") not in _NO_FINDING))


def _labels(table: Table) -> Iterator[str]:
    """The condition of each row in words; a cell that is left blank repeats the one above."""
    heads, above = table.header[-1][: table.n_labels], [""] * table.n_labels
    for row in table.rows:
        above = [cell or before for cell, before in zip(row, above, strict=False)]
        named = zip(heads, above, strict=True)
        yield ", ".join(f"{head} {cell}".strip() for head, cell in named if head != "evidence")


def _mean_said(name: str, row: Mapping[Any, Any]) -> str:
    """The mean opinion of a condition at its end."""
    if "n_runs" not in row or pd.isna(row.get("bias", float("nan"))):
        return ""
    said = f"{name[:1].upper()}{name[1:]}: the" if name else "The"
    said += f" mean opinion at the end is {number_text(row, 'bias')} and the diversity "
    said += f"{number_text(row, 'diversity')}, over {row['n_runs']} run{'' if row['n_runs'] == 1 else 's'}"
    missing = row.get("missing_rate", 0)
    return said + (f"; {missing:.1%} of the texts are without an opinion." if missing else ".")


def _contrast_said(_: str, row: Mapping[Any, Any]) -> str:
    """A contrast with its interval and test."""
    said = f"{row['contrast']} ({row['role']}): the difference is {number_text(row, 'difference', 'not known')}"
    if not pd.isna(row["p_reported"]):
        p = p_text(row["p_reported"])
        said += f", p {p}" if p.startswith("<") else f", p = {p}"
    return said + (f"; finding: {row['finding']}." if row["finding"] else ".")


def _variant_said(_: str, row: Mapping[Any, Any]) -> str:
    """What a variant changes."""
    if pd.isna(row.get("shift", float("nan"))):
        return ""
    said = f"Under the variant {row['label']}, the contrast changes by {number_text(row, 'shift')}"
    return said + (f"; finding: {row['finding']}." if row["finding"] else ".")


def _corrected_said(name: str, row: Mapping[Any, Any]) -> str:
    """A mean opinion as read and as corrected by labels."""
    said = f"{name or 'All texts'}: as read {number_text(row, 'raw')}, corrected by labels of people"
    return f"{said} {number_text(row, 'corrected', 'not known')}."


#: Sentences of a row, by the name of its table.
_SENTENCES = {
    "": _mean_said,
    "contrasts": _contrast_said,
    "robustness": _variant_said,
    "audit-bias": _corrected_said,
    "audit-contrasts": _corrected_said,
}

# -- how it was done -----------------------------------------------------------------------------------------


def methods(results: Results, told: Mapping[str, str]) -> str:
    """One paragraph on how a study was done, of its specification, its versions and `told`, its design in words."""
    runs = results.runs
    text = (
        templates()
        .get_template("methods.txt")
        .render(
            name=results.name,
            told=defaultdict(str, told),
            varied={label.removeprefix(VARIED): what for label, what in told.items() if label.startswith(VARIED)},
            made=results.manifest["environment"],
            swept=results.swept,
            scripted="scripted" in set(runs["evidence"]),
            players=played_by(runs["model"].astype(str), runs["evidence"]),
            validation=validation_statement(runs["validation"]),
        )
    )
    return " ".join(text.split())


def references(results: Results) -> Iterator[str]:
    """Sources of personas, topics, surveys and equations that the study used, each once."""
    contents = results.manifest.get("contents", {})
    found = [_personas(results), *(contents.get(part, {}) for part in ("topics", "surveys", "networks"))]
    yield from dict.fromkeys(source for part in found for source in _sources(part))
    from opinionsim.classic import MODELS

    for metric in results.spec.get("measurement", {}).get("metrics", []):
        found_metric = METRICS.get(metric if isinstance(metric, str) else metric["name"])
        if found_metric is not None and found_metric.source:
            doi = f", doi:{found_metric.doi}" if found_metric.doi else ""
            yield f"{found_metric.name}: {found_metric.source}{doi}"
    played = results.points if results.swept else results.runs[results.runs["evidence"].isin(["equation", "mixed"])]
    named = {part for model in set(played["model"]) for part in str(model).split(" + ")}
    for name in sorted(named & set(MODELS)):
        yield from (f"{MODELS[name].title}: {source.removeprefix('Source: ')}" for source in MODELS[name].source)


def _sources(node: Any) -> Iterator[str]:
    """Every source that stands in the contents of a manifest."""
    if isinstance(node, Mapping):
        if isinstance(source := node.get("source"), str) and source:
            yield source
        for name, each in node.items():
            if name != "personas" or isinstance(each, Mapping):
                yield from _sources(each)


def caveats(results: Results) -> Iterator[str]:
    """What a reader must keep in mind that no table says."""
    made = results.manifest.get("environment", {})
    if results.swept:
        yield "Numbers of equations say what these equations do, and nothing of people."
    elif {"scripted", "mixed"} & set(results.runs["evidence"]):
        yield "The scripted stand-in follows rules of this package: nothing here is evidence of people or models."
    if not results.swept and {"model", "mixed"} & set(results.runs["evidence"]):
        yield "Language models in the role of people are no people: what they say need not be what anybody would say."
    if not results.swept and (known := validation_statement(results.runs["validation"])):
        yield f"Instrument: {known}."
    for name, personas in _personas(results).items():
        if card := personas.get("card"):
            yield f"Personas {name}: {card}"
    for topic in _topics(results):
        if topic.get("sensitive"):
            yield f"The topic {topic.get('title') or topic.get('name')} is marked as sensitive."
    if (made.get("git") or {}).get("dirty"):
        yield "The folder in which the study was begun had changes that no commit holds."


def _topics(results: Results) -> Iterator[Mapping[str, Any]]:
    for file in results.manifest.get("contents", {}).get("topics", {}).values():
        yield from file.values()
