"""Import records of people from a table, checking each rating against the scale, into a store."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from opinionsim.comparison.people._panel_mapping import PanelMapping, load_panel_mapping
from opinionsim.comparison.people._recorded import RecordedPeople
from opinionsim.errors import SpecError
from opinionsim.foundation.documents import normal
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.foundation.tables import read_table
from opinionsim.llm import REPLY, Entry, EntryKey
from opinionsim.measurement import STANCE, imported_rating
from opinionsim.messages import printable
from opinionsim.metrics import SELF_REPORT
from opinionsim.running import SOURCE, run
from opinionsim.specification import load_experiment
from opinionsim.store import Results

#: Whole floats from here on may stand for several numbers.
_EXACT = 2.0**53
#: Variable of the first rating asked again.
RETEST = "retest"
#: Names that no condition and no answer may have, because variables and columns of frames have them.
_TAKEN = re.compile("agent|first|framing|group|last|retest|run_id|stance|step|topic|turn|twins|unit|wording|.*[.].*")
#: Kinds of text that the others of a group read.
_SHOWN = frozenset(act.kind for act in RecordedPeople.acts.values() if act.heard)


class _Note(NamedTuple):
    """One thing that a person said or rated, or received from outside."""

    step: int
    person: str
    kind: str
    text: str
    ratings: dict[str, float]
    sender: str = ""
    recipient: str = ""
    read: tuple[str, ...] = ()


@dataclass
class _Record:
    """The record of one unit on one topic."""

    unit: str
    topic: str
    conditions: dict[str, str]
    people: dict[str, dict[str, str]] = field(default_factory=dict)
    said: list[_Note] = field(default_factory=list)

    def content(self) -> tuple[list[list[Any]], dict[str, str], list[_Note]]:
        """Turns as step, agent, kind and reads; messages from outside by name; and what was said in each turn.

        A turn with a rating reads all that reached its author since the last rating; other turns, since the last turn.
        """
        agents = {person: agent for agent, person in enumerate(self.people)}
        reached: dict[str, list[int | str]] = defaultdict(list)
        rated, heard = Counter[str](), Counter[str]()
        turns: list[list[Any]] = []
        outside: dict[str, str] = {}
        published: list[_Note] = []
        last: dict[tuple[str, str], int] = {}
        for each in self.said:
            for text in each.read:
                outside[name := f"read-{len(outside)}"] = text
                reached[each.person].append(name)
            if each.sender and each.sender != each.person:
                ref: int | str | None = last.get((each.sender, each.text))
                if ref is None:
                    outside[ref := f"read-{len(outside)}"] = each.text
                reached[each.person].append(ref)
                continue
            since = rated if each.ratings else heard
            reads = reached[each.person][since[each.person] :]
            heard[each.person] = len(reached[each.person])
            if each.ratings:
                rated[each.person] = len(reached[each.person])
            last[each.person, each.text] = len(turns)
            if each.kind in _SHOWN and not each.sender:
                for other in agents:
                    if other != each.person and each.recipient in ("", other):
                        reached[other].append(len(turns))
            turns.append([each.step, agents[each.person], each.kind, reads])
            published.append(each)
        return turns, outside, published

    def entries(self) -> list[Entry]:
        """Entries of the journal of the run; the entry that lists the turns comes last."""
        turns, outside, published = self.content()
        entries = []
        for turn, ((step, agent, kind, _), said) in enumerate(zip(turns, published, strict=True)):
            found = {EntryKey(turn, REPLY, 0): said.text}
            found |= {imported_rating(turn, variable): repr(rating) for variable, rating in said.ratings.items()}
            entries += [Entry(key, step, agent, kind, "", text, source="import") for key, text in found.items()]
        taken = [[[person, told, None] for person, told in self.people.items()], turns, outside]
        last = json.dumps(taken, ensure_ascii=False)
        return [*entries, Entry(SOURCE, 0, 0, "", "", last, source="import")]


def import_panel(
    table: pd.DataFrame | str | Path,
    mapping: PanelMapping | str | Path,
    *,
    name: str | None = None,
    store: str | Path | None = None,
    instruments: Sequence[Mapping[str, Any]] = (),
) -> Results:
    """Import a table of people's opinions into a store, as an experiment with evidence ``human``.

    Each run is one unit (a group or a person) on one topic. Texts and ratings of people are entries of its journal with
    source ``import``: they do not count in any budget, and a replay needs no model. Runs of one unit form one block.

    Parameters
    ----------
    table : DataFrame, str or Path
        The table, or the path of a .csv or .parquet file.
    mapping : PanelMapping, str or Path
        The meaning of its columns, as for :func:`load_panel_mapping`.
    name : str, optional
        Name of the experiment; default that of the panel.
    store : str or Path, optional
        Address of the store; default ``sqlite:///results/NAME.sqlite``.
    instruments : sequence of mapping, optional
        Instruments that code texts, as in `measurement.instruments` of a specification. By default there are none,
        because people's own ratings are their opinions.

    Returns
    -------
    Results
        Ratings are opinions of the instrument `recorded`; answers of models in people's places are additional variables
        of the person's last rating.

    Raises
    ------
    SpecError
        If the table lacks a column, a person has two ratings in one wave, waves do not increase, a rating is off the
        scale, or a condition varies within a unit. Nothing has been written in these cases.
    StoreError
        If the store cannot be written.
    """
    chosen = mapping if isinstance(mapping, PanelMapping) else load_panel_mapping(mapping)
    if isinstance(chosen.points, dict) and not all(each.get("scale") for each in instruments):
        raise SpecError("instruments code points, but ratings are numbers between two ends; give each a separate scale")
    records = _records(_rows(table, chosen), chosen)
    units = {unit: number for number, unit in enumerate(dict.fromkeys(each.unit for each in records))}
    experiment = load_experiment(_specification(records, units, chosen, name or chosen.name, instruments))
    planned = {(each.cell.axes["topic"], each.replicate): each.run_id for each in experiment.runs}
    return run(experiment, store, records={planned[each.topic, units[each.unit]]: each.entries() for each in records})


def _slug(text: str) -> str:
    """A name for a specification made of any text."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "panel"


def _specification(
    records: Sequence[_Record],
    units: Mapping[str, int],
    mapping: PanelMapping,
    name: str,
    instruments: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The specification of the experiment that the records make."""
    cells: dict[tuple[str, int, tuple[tuple[str, str], ...]], list[int]] = defaultdict(list)
    for each in records:
        cells[each.topic, len(each.people), tuple(each.conditions.items())].append(units[each.unit])
    rated = {(variable, said.kind, said.step) for each in records for said in each.said for variable in said.ratings}
    variables = [STANCE, *sorted({variable for variable, _, _ in rated} - {STANCE})]
    content = [
        mapping.model_dump(mode="json", exclude={"pass_on", "missing"}),
        [[each.unit, each.topic, *each.content()] for each in records],
    ]
    record = {
        "label": "people",
        "kind": "recorded",
        "content": digest(canonical_json(content)),
        "steps": max(said.step for each in records for said in each.said),
        "rated": sorted({step for variable, _, step in rated if variable == STANCE}),
        "ratings": {name: sorted({kind for variable, kind, _ in rated if variable == name}) for name in variables},
        "collected": mapping.collected,
        "pass_on": mapping.pass_on,
    }
    sizes = {size for _, size, _ in cells}
    slugs = Counter(_slug(topic) for topic in {topic for topic, _, _ in cells})
    grids = []
    for (topic, size, conditions), own in cells.items():
        claims = mapping.claims.get(topic) or {"for": topic}
        slug = _slug(topic) if slugs[_slug(topic)] == 1 else f"{_slug(topic)}-{digest(topic)[:8]}"
        about = {name: told for name in ("source", "licence") if (told := getattr(mapping, name))}
        definition = {"name": slug, "title": topic, "claims": claims, "masked": False, **about}
        grid: dict[str, list[Any]] = {"topic": [{"label": topic, "definition": definition, "framing": "for"}]}
        grid |= {f"interaction.conditions.{factor}": [value] for factor, value in conditions}
        grid |= {"population.size": [size]} if len(sizes) > 1 else {}
        grids.append({**grid, "interaction": [{**record, "units": sorted(own), "conditions": dict(conditions)}]})
    return {
        "name": name,
        "description": "; ".join(filter(None, (mapping.source, mapping.licence))),
        "replicates": len(units),
        "population": {"size": max(sizes), "initial_opinions": "none"},
        "scale": {"points": mapping.scale.points, "labels": mapping.scale.labels},
        "measurement": {"instruments": list(instruments)},
        "sweep": grids,
    }


# -- the table ---------------------------------------------------------------------------------------------


def _rows(table: pd.DataFrame | str | Path, mapping: PanelMapping) -> list[tuple[str, dict[str, str]]]:
    """The rows of a table, each with its place and with its columns as texts; empty for what is missing."""
    columns = mapping.columns
    if taken := [name for name in (*mapping.conditions, *mapping.answers) if _TAKEN.fullmatch(name)]:
        raise SpecError(f"{taken[0]!r} cannot name a condition or an answer; rename it in the table and the mapping")
    if isinstance(table, pd.DataFrame) or Path(table).suffix == ".parquet":
        frame = table if isinstance(table, pd.DataFrame) else _read(Path(table))
        present = list(map(str, frame.columns))
        if absent := [column for column in columns if present.count(column) != 1]:
            raise SpecError(
                f"the mapping {mapping.name!r} names {', '.join(map(repr, absent))}, which the table must have once; "
                f"it has {', '.join(present)}"
            )
        read = [[_spelled(cell) for cell in frame[column]] for column in columns]
        read = [["" if cell in (mapping.missing or ()) else cell for cell in cells] for cells in read]
        places = [f"row {row}" for row in range(1, len(frame) + 1)]
    else:
        given = read_table(table, needed=columns, missing=mapping.missing)
        ways = dict.fromkeys(mapping.numbers, given.numbers)
        read = [[_spelled(cell) for cell in ways.get(column, given.texts)(column)] for column in columns]
        places = [f"{given.name}:{line}" for line in given.lines]
        given.tell(columns)
    return [(place, dict(zip(columns, row, strict=True))) for place, *row in zip(places, *read, strict=True)]


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read as a table, .csv or .parquet: {error}") from None


def _spelled(value: Any) -> str:
    """A cell as text, whole numbers without a point; empty where it is missing."""
    if value is None or value is pd.NA or value != value:  # NaN
        return ""
    if isinstance(value, float) and value.is_integer():
        if abs(value) >= _EXACT:
            raise SpecError(f"the number {value:.0f} has lost digits; store its column as text")
        return str(int(value))
    return printable(normal(str(value))).strip()


class _Line:
    """One row of a table, read by a mapping; errors name its place and column."""

    def __init__(self, cells: Mapping[str, str], place: str, mapping: PanelMapping) -> None:
        self._cells, self._place, self._mapping = cells, place, mapping
        self.turned = any(cells[column] in values for column, values in mapping.reversed.items())
        self._scale, self._continuous = mapping.scale, isinstance(mapping.points, dict)
        self._ends = self._scale.lowest + self._scale.highest

    def error(self, problem: str) -> SpecError:
        """Make an error about the row."""
        return SpecError(f"{self._place}: {problem}")

    def cell(self, column: str | None, *, needed: bool = False) -> str:
        """The text of a column; empty without one."""
        found = self._cells[column] if column else ""
        if needed and column and not found:
            raise self.error(f"{column!r} is empty; every row needs one")
        return found

    def number(self, column: str) -> float:
        """The number in a column."""
        try:
            found = float(self.cell(column, needed=True))
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise self.error(f"{column!r} is {self.cell(column)!r}, which is not a number")
        return found

    def ratings(self, columns: Mapping[str, str]) -> dict[str, float]:
        """Ratings by variable, without empty ones; reversed if the statement was worded against the topic."""
        found = {variable: self.number(column) for variable, column in columns.items() if self.cell(column)}
        for variable, rating in found.items():
            points = self._scale.points
            if not (points[0] <= rating <= points[-1] if self._continuous else rating in points):
                told = f"{points[0]} to {points[-1]}" if self._continuous else ", ".join(map(str, points))
                valid = f"valid: {told}, or give the mapping other points"
                raise self.error(f"{columns[variable]!r} is {rating:g}, which is not on the scale; {valid}")
        return {variable: self._ends - rating if self.turned else rating for variable, rating in found.items()}

    def said(self) -> Iterator[tuple[float, _Note]]:
        """What the row contains about its person, each with its wave."""
        mapping = self._mapping
        again = {RETEST: mapping.retest} if mapping.retest else {}
        for wave, column in enumerate(mapping.ratings):
            last = wave == len(mapping.ratings) - 1
            answers = {**(mapping.answers if last else {}), **({} if wave else again)}
            if not (ratings := self.ratings({STANCE: column})) and mapping.wave is None:
                continue
            if ratings:
                ratings |= self.ratings(answers)
            read = [self.cell(each) for each in mapping.read if last and self.cell(each)]
            text = self.cell(mapping.text) if last else ""
            if text or ratings:
                kind = self.cell(mapping.kind) or ("post" if not ratings else "report" if mapping.text else SELF_REPORT)
                kind = mapping.kinds.get(kind, kind)
                if kind not in RecordedPeople.acts:
                    raise self.error(
                        f"{mapping.kind!r} is {kind!r}; valid: {', '.join(RecordedPeople.acts)}, or give kinds"
                    )
                given = self.cell(mapping.person), kind, text or self._words(ratings[STANCE]), ratings
                sent = self.cell(mapping.sender), self.cell(mapping.recipient)
                said = _Note(0, *given, *sent, tuple(mapping.messages.get(each, each) for each in read))
                yield (wave if mapping.wave is None else self.number(mapping.wave)), said

    def _words(self, rating: float) -> str:
        """What the person was shown for its rating."""
        own = self._ends - rating if self.turned else rating
        return f"{own:g}" if self._continuous else self._scale.label(own)


def _records(rows: Sequence[tuple[str, Mapping[str, str]]], mapping: PanelMapping) -> list[_Record]:
    """The records of all units and topics; waves become steps, from 0."""
    records: dict[tuple[str, str], _Record] = {}
    ordered: dict[tuple[str, str], list[tuple[float, float, int, _Note]]] = defaultdict(list)
    rated: set[tuple[Any, ...]] = set()
    latest: dict[tuple[str, ...], float] = {}
    for at, (place, cells) in enumerate(rows):
        row = _Line(cells, place, mapping)
        person, unit = row.cell(mapping.person, needed=True), row.cell(mapping.group or mapping.person, needed=True)
        topic = row.cell(mapping.topic, needed=True) or mapping.name
        factors = {column: cells[column] for column in mapping.conditions}
        factors |= {"wording": "against" if row.turned else "for"} if mapping.reversed else {}
        record = records.setdefault((unit, topic), _Record(unit, topic, factors))
        for name, value in factors.items():
            if (before := record.conditions[name]) != value:
                problem = f"{name!r} is {value!r}, and {before!r} in another row of {unit!r} on {topic!r}"
                raise row.error(f"the condition {problem}; conditions must be constant within a unit and topic")
        record.people.setdefault(person, {}).update({name: cells[name] for name in mapping.attributes if cells[name]})
        for wave, said in row.said():
            order = math.nan if mapping.order is None else row.number(mapping.order)
            of = (unit, topic, person)
            if mapping.order is None and wave < latest.get(of, wave):
                problem = f"wave {wave:g} of {person!r} comes after wave {latest[of]:g}"
                raise row.error(f"{problem}; sort the table by wave, or name the column of the order")
            latest[of] = wave
            mark = (*of, wave, str(order))
            if mark in rated and said.ratings and said.sender in ("", person):
                problem = f"person {person!r} has two ratings of {topic!r} at the same time"
                raise row.error(f"{problem} (wave {wave:g}); give one row per person and wave")
            rated |= {mark} if said.ratings else set()
            ordered[unit, topic].append((wave, 0.0 if mapping.order is None else order, at, said))
    steps = {wave: step for step, wave in enumerate(sorted({each[0] for own in ordered.values() for each in own}))}
    for which, own in ordered.items():
        records[which].said = [
            said._replace(step=steps[wave]) for wave, _, _, said in sorted(own, key=itemgetter(0, 1, 2))
        ]
    found = [record for record in records.values() if any(STANCE in said.ratings for said in record.said)]
    if not found:
        raise SpecError(f"the table has no rating in {', '.join(mapping.ratings)}; a panel needs at least one")
    return found
