"""What is said of a study in words: its design, what its tables say, how it was done, and what to keep in mind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from opinionsim.analysis import Table, headings, number_text, p_text, point_axes, spell_all
from opinionsim.metrics import (
    BY_MODELS,
    SELF_REPORT,
    WITHOUT_FINDING,
    condition_axes,
    order_levels,
    played_by,
    validation_statement,
)
from opinionsim.planning import card_of
from opinionsim.report._page_templates import WORDS, filled, sentences
from opinionsim.specification import axes_of
from opinionsim.store import Results

#: Most levels that are listed one by one, and most conditions that a sentence is made of.
_LISTED, _TOLD = 16, 24
#: The label of the wording of prompts, and the texts of acts in the name of one.
_WORDING, _TEXTS = "Wording of the prompts", re.compile(r"(\+[^+@,]+)+(?=@)")
#: Labels of what is texts, in which there are commas.
_TEXTUAL = ("Question of the topic", "Claim", "Task")
#: How labels of what varies begin.
VARIED = "Varied: "


def design(results: Results) -> dict[str, str]:
    """The design in words, by labels; nothing is said of what the design does not have."""
    swept, spec = results.swept, results.spec
    frame = results.points if swept else results.ordered_runs
    states = frame["error"].eq("").map({True: "complete", False: "failed"}) if swept else frame["status"]
    counts = (states if swept else states[~frame["run_id"].duplicated()]).value_counts()
    # What nobody carries out any more was cut off.
    counts = counts if results.under_way else counts.rename({"running": "cut off"})
    told = {"Runs": f"{counts.sum()} ({', '.join(f'{number} {state}' for state, number in counts.items())})"}
    if len(results.designs) > 1:
        told["Design"] = f"number {results.design} of {len(results.designs)} under this name"
    axes = point_axes(frame) if swept else condition_axes(frame)
    for axis, name in zip(axes, headings(axes), strict=True):
        levels = order_levels(frame[axis])
        told[f"{VARIED}{name}"] = listed(levels if len(levels) > 1 else [*levels, "not set"])
    if swept:
        attrs = frame.attrs
        told |= {"Model": attrs["model"], "Steps": str(attrs["steps"])}
        told |= {name.capitalize(): spell_all(attrs.get(name, {})) for name in ("parameters", "scheme")}
    else:
        told |= {
            label: listed((each for each in order_levels(frame[name]) if each), "; " if label in _TEXTUAL else ", ")
            for label, name in WORDS["columns"].items()
            if name not in axes
        }
        told |= {part.capitalize(): listed(contents_of(results).get(part, ())) for part in ("personas", "surveys")}
        people = results.agents.query("evidence == 'human'")
        if len(people) and not is_on_record(results):
            published = people["publishes"].sum()
            told["People"] = (
                f"{len(people)} of {len(results.agents)} in the cast; words of {published} may be published"
            )
        told["Measured"] = "; ".join(_instruments(results.opinions))
        # A pack has a name that people know; the texts that acts bring along are many.
        told[_WORDING] = _TEXTS.sub(lambda found: f" with {found[0].count('+')} texts of acts", told[_WORDING])
    on_record = is_on_record(results)
    # To people on record, their twins and the members of a cast no opinion is assigned; each person is one replicate.
    apart = (*["replicates"] * on_record, *["population."] * (on_record or bool(spec.get("cast"))))
    for label, path in () if is_recorded(results) else WORDS["fields"].items():
        # What is varied is told already.
        if _is_swept(path, spec) or path.startswith(apart):
            continue
        node: Any = spec
        for name in path.split("."):
            node = node.get(name) if isinstance(node, Mapping) else None
        if node is not None and not told.get(label):
            told[label] = spell_all({"": node}).removeprefix("=")
    return {label: what for label, what in told.items() if what}


def _is_swept(path: str, spec: Mapping[str, Any]) -> bool:
    """Whether a field, one above it or one below it differs between cells."""
    return any(
        f"{other}.".startswith(f"{path}.") or f"{path}.".startswith(f"{other}.") for other in axes_of(spec.get("sweep"))
    )


def is_recorded(results: Results) -> bool:
    """Whether results are of people alone, taken in from a table: nothing was asked, played or drawn at random."""
    return not results.swept and set(results.runs["interaction"]) == {"recorded"}


def contents_of(results: Results) -> dict[str, Any]:
    """The files that a study used, of its manifest; people on record and their twins are none of the personas."""
    found = dict(results.manifest.get("contents", {}))
    return {**found, "personas": {}} if is_on_record(results) else found


def is_on_record(results: Results) -> bool:
    """Whether all who take part are people on record, or stand in for them."""
    return not results.swept and set(results.runs["interaction"]) <= {"recorded", "twins"}


def _instruments(opinions: pd.DataFrame) -> Iterator[str]:
    """What each instrument measures, how, of which texts and on which scale."""
    columns = ["variable", "classifier", "scale"]
    for names, own in opinions[[*columns, "kind"]].drop_duplicates().groupby(columns, sort=False):
        variable, classifier, scale = map(str, names)
        points = scale.replace(",", ", ").replace("-", "\N{MINUS SIGN}")
        coded = [kind for kind in own["kind"] if kind != SELF_REPORT or classifier in WORDS["read"]]
        stated = ["as each self-report states it"] * (len(coded) < len(own))
        read = [f"{WORDS['read'].get(classifier, f'coded by {classifier}')} (in texts of kind {listed(coded)})"]
        ways = " and ".join([*(read if coded else []), *stated])
        yield f"{variable.replace('_', ' ')}, {ways}, on the points {points}"


def listed(values: Iterable[Any], between: str = ", ") -> str:
    """Values in words; of many, their number and the first and last."""
    found = [str(value) for value in values]
    return between.join(found) if len(found) <= _LISTED else f"{len(found)} in all: {found[0]}, ..., {found[-1]}"


# -- what tables say -----------------------------------------------------------------------------------------


def statements(tables: Iterable[Table]) -> Iterator[str]:
    """Sentences of numbers of tables; none of rows in which a scripted stand-in is, or may be, among the authors."""
    for table in tables:
        rows = table.frame.to_dict("records")
        if len(rows) <= _TOLD:
            told = zip(_labels(table), rows, strict=False)
            found = [(name, row) for name, row in told if row.get("evidence") not in WITHOUT_FINDING]
            yield from sentences("statements.txt", table=table.name, rows=found, number=number_text, p_text=p_text)


def usable(tables: Iterable[Table]) -> str:
    """How many agents and runs the numbers of opinions rest on; empty without these."""
    for frame in (table.frame for table in tables if table.name == "" and "n_withheld" in table.frame):
        n = frame[["n_measured", "n_with_turn", "n_withheld", "n_runs"]].sum()
        told = f"{n.n_measured:,.0f} of the {n.n_with_turn:,.0f} agents that had a turn"
        share, kept = f"{n.n_measured / n.n_with_turn:.1%}", n.n_runs - n.n_withheld
        return f"Usable: opinions of {told} ({share}) were measured, and {kept:.0f} of {n.n_runs:.0f} runs have a mean."
    return ""


def _labels(table: Table) -> Iterator[str]:
    """The condition of each row in words; a cell that is left blank repeats the one above."""
    heads, above = table.header[-1][: table.n_labels], [""] * table.n_labels
    for row in table.rows:
        above = [cell or before for cell, before in zip(row, above, strict=False)]
        named = zip(heads, above, strict=True)
        yield ", ".join(f"{head} {cell}".strip() for head, cell in named if head != "evidence")


# -- how it was done -----------------------------------------------------------------------------------------


def methods(results: Results, told: Mapping[str, str]) -> str:
    """One paragraph on how a study was done, of its specification, its versions and `told`, its design in words."""
    runs = results.runs
    text = filled(
        "methods.txt",
        name=results.name,
        told=defaultdict(str, told),
        varied={label.removeprefix(VARIED): what for label, what in told.items() if label.startswith(VARIED)},
        made=results.manifest["environment"],
        swept=results.swept,
        recorded=is_recorded(results),
        beside=is_on_record(results),
        asked=bool(BY_MODELS & set(runs["evidence"])),
        redraws=results.spec.get("redraws", 1),
        contrasted=bool((results.spec.get("analysis") or {}).get("contrasts")),
        own=list(dict.fromkeys(each for told in results.declared.values() for each in told.get("methods", ()))),
        stance=bool(runs["instrument_id"].notna().any()),
        scripted="scripted" in set(runs["evidence"]),
        players=played_by(runs["model"].astype(str), runs["evidence"]),
        validation=validation_statement(runs["validation"]),
    )
    return " ".join(text.split())


def caveats(results: Results) -> list[str]:
    """What a reader must keep in mind that no table says."""
    made, contents = results.manifest.get("environment", {}), contents_of(results)
    played = set() if results.swept else set(results.agents.loc[results.agents["evidence"] == "model", "model"])
    return sentences(
        "caveats.txt",
        authors={"equation"} if results.swept else set("+".join(results.runs["evidence"]).split("+")),
        swept=results.swept,
        instrument="" if results.swept else validation_statement(results.runs["validation"]),
        personas=contents.get("personas", {}),
        topics=[topic for file in contents.get("topics", {}).values() for topic in file.values()],
        dirty=(made.get("git") or {}).get("dirty"),
        cards=[card for name in sorted(map(str, played)) if (card := card_of(name.partition(" (")[0], results.url))],
    )
