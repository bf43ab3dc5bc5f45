"""Words of a study: its design, statements about its tables, methods, and caveats."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from opinionsim.analysis import Table, headings, number_text, p_text, spell
from opinionsim.metrics import (
    SELF_REPORT,
    WITHOUT_FINDING,
    order_levels,
    validation_statement,
)
from opinionsim.planning import card_of
from opinionsim.registry import described, find, names
from opinionsim.report._page_templates import WORDS, filled, sentences
from opinionsim.report._released import nodes
from opinionsim.specification import analysis_of, axes_of
from opinionsim.store import Results

#: Most levels that are listed one by one, and most conditions that a sentence is made of.
_LISTED, _TOLD = 16, 24
#: The label of the wording of prompts, and the texts of acts in the name of one.
_WORDING, _TEXTS = "Wording of the prompts", re.compile(r"(\+[^+@,]+)+(?=@)")
#: Labels of what is texts, in which there are commas.
_TEXTUAL = ("Question of the topic", "Claim", "Task")
#: Fields that name what has the parameters, or are told elsewhere; and columns whose levels may have parameters.
_NAMING = frozenset(("kind", "name", "label", "steps", "exposures", *names("endpoint")))
_DETAILED = ("interaction", "network", "memory", "model")
#: What docstrings say to readers of code: references to Python, and to the list of requirements.
_INNER = re.compile(r":\w+:`~?([^`]+)`| \([A-D]\d+[^)]*\)|; [A-D]\d+[^)]*(?=\))")
#: How labels of what varies begin.
VARIED = "Varied: "
#: Lanes in which replies cost less than at once, and where these replies come from.
CHEAPER = {"batch": "a provider's batch queue", "flex": "a provider's flexible tier"}

#: What data files hold, by the field that holds it.
_HELD = {"personas": "persona", "claims": "claim", "messages": "message", "rows": "respondent", "edges": "tie"}


class DataFile(NamedTuple):
    """Data that a study used: name, contents, source, and licence."""

    name: str
    number: int
    one: str
    source: str
    licence: str

    @property
    def held(self) -> str:
        """Contents of the data, as in ``5 personas``; without a number if they may not be passed on."""
        return f"{f'{self.number} ' if self.number else ''}{self.one}{'s' * (self.number != 1)}"


def files_in(manifest: Mapping[str, Any]) -> list[DataFile]:
    """The data files in a manifest or its contents."""
    found = {}
    for key, node in nodes(manifest, skip=("prompts", "environment")):
        field = next((each for each in _HELD if isinstance(node, Mapping) and each in node), "")
        about = node.get("mapping", node) if field else {}
        if not (isinstance(about.get("source"), str) or field in ("rows", "edges")):
            continue
        number, one = len(node[field]) if isinstance(node[field], Mapping | list | tuple) else 0, _HELD[field]
        name = Path(key).name if Path(key).suffix else " ".join(str(about.get("name", "")).split()) or key
        source, licence = (" ".join(str(about.get(each) or "").split()) for each in ("source", "licence"))
        found[name, one] = DataFile(name, number, one, source, licence)
    return list(found.values())


def design(results: Results) -> dict[str, str]:
    """The design in words, by labels, without labels that do not apply."""
    spec, kind, frame = results.spec, results.study, results.units
    counts = kind.states(results).value_counts()
    # What nobody carries out any more was cut off.
    counts = counts if results.under_way else counts.rename({"running": "cut off"})
    told = {"Runs": f"{counts.sum()} ({', '.join(f'{number} {state}' for state, number in counts.items())})"}
    if len(results.designs) > 1:
        told["Design"] = f"number {results.design} of {len(results.designs)} under this name"
    axes = kind.axes(results)
    details = _details_of(results)
    for axis, name in zip(axes, headings(axes), strict=True):
        levels = [_with(each, axis, details) for each in order_levels(frame[axis])]
        told[f"{VARIED}{name}"] = listed(levels if len(levels) > 1 else [*levels, "not set"], _between(levels))
    told |= kind.words(results)
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
            is_part = isinstance(node, Mapping) and "kind" in node
            told[label] = _with(node["kind"], label.lower(), details) if is_part else spell(node)
    analysis = analysis_of(spec, results.left_out)
    if (deciding := analysis.contrasts.get(analysis.primary or "")) is not None:
        told["Primary contrast"] = f"{analysis.primary} ({deciding.quantity.replace('_', ' ')}: {deciding.words})"
    return {label: what for label, what in told.items() if what}


def words_of_runs(results: Results) -> dict[str, str]:
    """The design of runs in words, by labels, beside what varies."""
    frame, told = results.units, dict[str, str]()
    axes = results.study.axes(results)
    details = _details_of(results)
    for label, name in WORDS["columns"].items():
        if name not in axes:
            levels = [_with(each, name, details) for each in order_levels(frame[name]) if each]
            told[label] = listed(levels, "; " if label in _TEXTUAL else _between(levels))
    files = files_in(contents_of(results))
    for label, one in (("Personas", "persona"), ("Surveys", "respondent")):
        read = (each for each in files if each.one == one)
        told[label] = listed(f"{each.name} (n = {each.number})" if each.number else each.name for each in read)
    people = results.agents.query("evidence == 'human'")
    if len(people) and not is_on_record(results):
        published = people["publishes"].sum()
        told["People"] = f"{len(people)} of {len(results.agents)} in the cast; words of {published} may be published"
    told["Measured"] = "; ".join(_instruments(results.opinions))
    # A pack has a name that people know; the texts that acts bring along are many.
    told[_WORDING] = _TEXTS.sub(lambda found: f" with {found[0].count('+')} texts of acts", told[_WORDING])
    return told


def _with(level: Any, axis: str, details: Mapping[str, str]) -> Any:
    """A level with its parameters, if it has any; a network that is only named has its defaults."""
    if axis.rpartition(".")[2] not in _DETAILED:
        return level
    told = details.get(level) or (", ".join(parameters({"kind": level})) if level in names("network") else "")
    return f"{level} ({told})" if told else level


def _between(levels: Iterable[Any]) -> str:
    """What stands between levels: a semicolon where commas stand within them."""
    return "; " if any("," in str(each) for each in levels) else ", "


def _details_of(results: Results) -> dict[str, str]:
    """The parameters that the specification of results states, by names."""
    # Some ways of interacting tell their parameters in sentences of their own.
    own = any(each.get("methods") for each in results.declared.values())
    # The parameters of recorded people and of their stand-ins are hashes, which say nothing to a reader.
    hidden = _kinds_on_record(results)
    return _details(results.manifest.get("spec", results.spec), hidden, of_interaction=not own)


def _details(spec: Mapping[str, Any], hidden: Collection[str], *, of_interaction: bool) -> dict[str, str]:
    """The parameters of all networks, interactions, memories and endpoints of a specification, by their names."""
    grids = spec["sweep"] if isinstance(spec.get("sweep"), list) else [spec.get("sweep") or {}]
    interaction, model = dict(spec.get("interaction") or {}), spec.get("model")
    stated = [value for grid in grids for values in grid.values() for value in values]
    stated += [{name: each for name, each in interaction.items() if name != "network"}] if of_interaction else []
    stated += [
        interaction.get("network"),
        model if isinstance(model, Mapping) and {*names("endpoint")} & model.keys() else None,
    ]
    found: dict[str, str] = {}
    for each in stated:
        if not isinstance(each, Mapping) or each.get("kind") in hidden:
            continue
        # A level of one word that has a label is its value.
        each = {"kind": each["value"], "label": each["label"]} if isinstance(each.get("value"), str) else each
        kind = str(next((each[name] for name in ("kind", *names("endpoint"), "name") if each.get(name)), ""))
        told = ", ".join(parameters(each))
        name = str(each.get("label") or kind)
        found.setdefault(name, told if name == kind else ", ".join(filter(None, (kind, told))))
    return found


def parameters(stated: Mapping[str, Any]) -> Iterator[str]:
    """Parameters with their values, as in ``k = 4``: numbers, and what is not as by default."""
    kind = str(stated.get("kind"))
    of = next((each for each in ("network", "interaction") if kind in names(each)), "")
    known = find(of, kind).target.model_fields if of else {}
    defaults = {name: each.default for name, each in known.items() if not each.is_required()}
    fields = {**(defaults if of == "network" else {}), **stated}
    for name, value in fields.items():
        usual = name in defaults and value == defaults[name] and type(value) not in (int, float)
        if usual or name in _NAMING or value in (None, "", [], {}):
            continue
        if name in ("parameters", "scheme", "options") and isinstance(value, Mapping):
            yield from parameters(value)
        else:
            yield f"{name.replace('_', ' ')} = {spell(value)}"


def _is_swept(path: str, spec: Mapping[str, Any]) -> bool:
    """Whether a field, one above it or one below it differs between cells."""
    return any(
        f"{other}.".startswith(f"{path}.") or f"{path}.".startswith(f"{other}.") for other in axes_of(spec.get("sweep"))
    )


def is_recorded(results: Results) -> bool:
    """Whether results are only of people from an imported table, so nothing was asked, played or drawn at random."""
    return bool(results.run_ids) and all("recorded" in each for each in results.declared.values())


def contents_of(results: Results) -> dict[str, Any]:
    """The files that a study used, from its manifest; personas exclude recorded people and their twins."""
    found = dict(results.manifest.get("contents", {}))
    return {**found, "personas": {}} if is_on_record(results) else found


def is_on_record(results: Results) -> bool:
    """Whether all members are recorded people or their stand-ins."""
    return bool(results.run_ids) and set(results.runs["interaction"]) <= _kinds_on_record(results)


def _kinds_on_record(results: Results) -> set[str]:
    """The ways of interacting of runs whose members are recorded people or their stand-ins."""
    on_record = {cell for cell, each in results.declared.items() if {"recorded", "stands_in"} & each.keys()}
    return set(results.runs.loc[results.runs["cell"].isin(on_record), "interaction"])


def _instruments(opinions: pd.DataFrame) -> Iterator[str]:
    """What each instrument measures, how, of which texts and on which scale."""
    columns = ["variable", "classifier", "scale"]
    for key, own in opinions[[*columns, "kind"]].drop_duplicates().groupby(columns, sort=False):
        variable, classifier, scale = map(str, key)
        points = scale.replace(",", ", ").replace("-", "\N{MINUS SIGN}")
        coded = [kind for kind in own["kind"] if kind != SELF_REPORT or classifier in WORDS["read"]]
        stated = ["as each self-report states it"] * (len(coded) < len(own))
        kinds = " and ".join(filter(None, (", ".join(coded[:-1]), *coded[-1:])))
        read = [f"{WORDS['read'].get(classifier, f'coded by {classifier}')} (in texts of kind {kinds})"]
        ways = " and ".join([*(read if coded else []), *stated])
        yield f"{variable.replace('_', ' ')}, {ways}, on the points {points}"


def listed(values: Iterable[Any], between: str = ", ") -> str:
    """Values in words; if there are many, their number and the first and last."""
    found = [str(value) for value in values]
    return between.join(found) if len(found) <= _LISTED else f"{len(found)} in all: {found[0]}, ..., {found[-1]}"


# -- what tables say -----------------------------------------------------------------------------------------


def statements(tables: Iterable[Table]) -> Iterator[str]:
    """Sentences about numbers in tables, except rows whose authors include or may include the scripted stand-in."""
    for table in tables:
        rows = table.frame.to_dict("records")
        if len(rows) <= _TOLD:
            told = zip(_labels(table), rows, strict=False)
            found = [(name, row) for name, row in told if row.get("evidence") not in WITHOUT_FINDING]
            yield from sentences("statements.txt", table=table.name, rows=found, number=number_text, p_text=p_text)


def usable(tables: Iterable[Table]) -> str:
    """Number of agents and runs behind the numbers of opinions; empty without opinions."""
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
    """One paragraph on methods, from the specification, the versions and `told`, the design in words."""
    runs = results.runs
    text = filled(
        "methods.txt",
        name=results.name,
        told=defaultdict(str, told),
        varied=defaultdict(str, {name[len(VARIED) :]: what for name, what in told.items() if name.startswith(VARIED)}),
        made=results.manifest["environment"],
        kind=results.study,
        recorded=is_recorded(results),
        beside=is_on_record(results),
        redraws=results.spec.get("redraws", 1),
        about=_about(kinds.pop()) if len(kinds := set(runs["interaction"])) == 1 else "",
        contrasted=bool((results.spec.get("analysis") or {}).get("contrasts")),
        smallest=(results.spec.get("analysis") or {}).get("smallest"),
        own=list(dict.fromkeys(each for told in results.declared.values() for each in told.get("methods", ()))),
        stance=bool(runs["instrument_id"].notna().any()),
        players={kind: sorted(set(own["model"].astype(str))) for kind, own in results.agents.groupby("evidence")},
        validation=validation_statement(runs["validation"]),
        bought=_bought(results),
    )
    return " ".join(text.split())


def _bought(results: Results) -> str:
    """How many replies of models came through lanes that cost less, as a sentence; empty if none did."""
    lanes = results.calls["lane"]
    told = [
        f"{number:,} ({number / len(lanes):.1%}) came through {place}"
        for lane, place in CHEAPER.items()
        if (number := int((lanes == lane).sum()))
    ]
    return f"Of {len(lanes):,} replies of models, {' and '.join(told)}." if told else ""


def _about(interaction: str) -> str:
    """What happens in an interaction of the package, as the end of a sentence."""
    first = about_part("interaction", interaction)[0] if interaction in names("interaction") else ""
    return re.sub(r"^[A-Z](?=[a-z ])", lambda found: found[0].lower(), first)


def about_part(kind: str, name: str) -> tuple[str, str]:
    """The documentation of a part in a form for readers of a paper: its first line, and the rest."""
    first, rest, _ = described(find(kind, name).target)
    plain = lambda found: f"`{found[1]}`" if found[1] else ""  # noqa: E731
    return _INNER.sub(plain, first), _INNER.sub(plain, rest)


def caveats(results: Results) -> list[str]:
    """Caveats that no table states."""
    made, contents = results.manifest.get("environment", {}), contents_of(results)
    played = set(results.agents.loc[results.agents["evidence"] == "model", "model"])
    return sentences(
        "caveats.txt",
        authors=set("+".join(results.units["evidence"]).split("+")),
        instrument=validation_statement(results.runs["validation"]),
        personas=contents.get("personas", {}),
        topics=[topic for file in contents.get("topics", {}).values() for topic in file.values()],
        dirty=(made.get("git") or {}).get("dirty"),
        cards=[card for name in sorted(map(str, played)) if (card := card_of(name.partition(" (")[0], results.url))],
    )
