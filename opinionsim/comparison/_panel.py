"""Records of people from tables: before and after, waves of a panel, or conversations."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opinionsim.background import call_soon
from opinionsim.comparison._mapping import PanelMapping, load_panel_mapping
from opinionsim.errors import SpecError
from opinionsim.llm import Entry, EntryKey
from opinionsim.measurement import SELF_REPORT, STANCE, imported_rating
from opinionsim.messages import printable
from opinionsim.running import SOURCE, default_store, under_way
from opinionsim.schedules import RECORDED_KINDS
from opinionsim.specification import Experiment, load_experiment
from opinionsim.store import Results, load
from opinionsim.streams import canonical_json, digest

if TYPE_CHECKING:
    import pandas as pd

#: Variable of the first rating asked again.
RETEST = "retest"
#: Kinds of text that the others of a group read.
_SHOWN = frozenset({"post", "speech", "response"})


class _Said(NamedTuple):
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
    said: list[_Said] = field(default_factory=list)

    @property
    def cell(self) -> tuple[str, int, tuple[tuple[str, str], ...]]:
        """What tells its cell of the design from others: topic, number of people, and conditions."""
        return self.topic, len(self.people), tuple(self.conditions.items())

    def content(self) -> tuple[list[list[Any]], dict[str, str], list[_Said]]:
        """Turns as step, agent, kind and reads; messages from outside by name; and what was said in each turn.

        A turn with a rating reads all that reached its author since the last rating, another all since the last turn.
        """
        agents = {person: agent for agent, person in enumerate(self.people)}
        reached: dict[str, list[int | str]] = defaultdict(list)
        rated, heard = dict.fromkeys(agents, 0), dict.fromkeys(agents, 0)
        turns: list[list[Any]] = []
        outside: dict[str, str] = {}
        published: list[_Said] = []
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

    def entries(self) -> Iterator[Entry]:
        """The entries of its journal, the one that says which turns there are last."""
        turns, outside, published = self.content()
        for turn, ((step, agent, kind, _), said) in enumerate(zip(turns, published, strict=True)):
            found = {EntryKey(turn, "reply", 0): said.text}
            found |= {imported_rating(turn, variable): repr(rating) for variable, rating in said.ratings.items()}
            for key, text in found.items():
                yield Entry(key, step, agent, kind, "", text, source="import")
        people = [[person, told, None] for person, told in self.people.items()]
        yield Entry(SOURCE, 0, 0, "", "", json.dumps([people, turns, outside], ensure_ascii=False), source="import")


def import_panel(
    table: pd.DataFrame | str | Path,
    mapping: PanelMapping | str | Path,
    *,
    name: str | None = None,
    store: str | Path | None = None,
    instruments: Sequence[Mapping[str, Any]] = (),
) -> Results:
    """Take a table of people's opinions into a store, as an experiment of evidence ``human``.

    A run is a unit, a group or a person, on one topic. What people said and rated are entries of its journal of source
    ``import``: they count in no budget, and replay needs no model. Runs of one unit are one block.

    Parameters
    ----------
    table : DataFrame, str or Path
        The table, or the path of a .csv or .parquet file.
    mapping : PanelMapping, str or Path
        What its columns mean, as for :func:`load_panel_mapping`.
    name : str, optional
        Name of the experiment; default that of the panel.
    store : str or Path, optional
        Address of the store; default ``sqlite:///results/NAME.sqlite``.
    instruments : sequence of mapping, optional
        Instruments that code texts, as `measurement.instruments` of a specification lists them; default none, for
        people's own ratings are their opinions.

    Returns
    -------
    Results
        Ratings are opinions of the instrument `recorded`; the answers of models in people's places are further
        variables, of the person's last rating.

    Raises
    ------
    SpecError
        If the table lacks a column, two ratings are of one person and wave, waves do not grow, a rating is off the
        scale, or a condition varies within a unit. Nothing has been written then.
    StoreError
        If the store cannot be written.
    """
    chosen = mapping if isinstance(mapping, PanelMapping) else load_panel_mapping(mapping)
    records = _records(_rows(table, chosen), chosen)
    experiment = load_experiment(_specification(records, chosen, name or chosen.name, instruments))
    units = {unit: number for number, unit in enumerate(dict.fromkeys(each.unit for each in records))}
    planned = {(_cell_of(run.spec), run.replicate): run.run_id for run in experiment.runs}
    taken = {planned[_key(each), units[each.unit]]: list(each.entries()) for each in records}
    return _carried_out(experiment, store, taken)


def _carried_out(experiment: Experiment, store: str | Path | None, records: dict[str, list[Entry]]) -> Results:
    with under_way(experiment, store, records=records) as (runner, future):
        try:
            future.result()
        except KeyboardInterrupt:
            call_soon(runner.stop)
            future.result()
            raise
    return load(str(store or default_store(experiment)), experiment.spec.name)


# -- the specification -------------------------------------------------------------------------------------


def _slug(text: str) -> str:
    """A name for a specification made of any text."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "panel"


def _key(record: _Record) -> tuple[str, int, str]:
    topic, size, conditions = record.cell
    return topic, size, canonical_json(dict(conditions))


def _cell_of(spec: Any) -> tuple[str, int, str]:
    return spec.topic.definition["title"], spec.size, canonical_json(spec.interaction.conditions)


def _specification(
    records: Sequence[_Record], mapping: PanelMapping, name: str, instruments: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The specification of the experiment that the records make."""
    units = {unit: number for number, unit in enumerate(dict.fromkeys(each.unit for each in records))}
    cells: dict[Any, list[int]] = defaultdict(list)
    steps = sorted({said.step for each in records for said in each.said if STANCE in said.ratings})
    kinds: dict[str, set[str]] = defaultdict(set)
    for each in records:
        cells[each.cell].append(units[each.unit])
        for said in each.said:
            for variable in said.ratings:
                kinds[variable].add(said.kind)
    content = [mapping.model_dump(mode="json"), [[each.unit, each.topic, *each.content()] for each in records]]
    record = {
        "label": "people",
        "kind": "recorded",
        "content": digest(canonical_json(content)),
        "steps": max((said.step for each in records for said in each.said), default=0),
        "rated": steps,
        "ratings": {variable: sorted(found) for variable, found in sorted(kinds.items(), key=_stance_first)},
        "collected": mapping.collected,
    }
    sizes = {size for _, size, _ in cells}
    slugs = {topic: _slug(topic) for topic, _, _ in cells}
    if len(set(slugs.values())) < len(slugs):
        slugs = {topic: f"topic-{place}" for place, topic in enumerate(slugs)}

    def axes(cell: Any, own: list[int]) -> dict[str, list[Any]]:
        topic, size, conditions = cell
        claims = mapping.claims.get(topic) or {"for": topic}
        definition = {"name": slugs[topic], "title": topic, "claims": claims, "masked": False}
        factors = dict(conditions)
        return {
            "topic": [{"label": slugs[topic], "definition": definition, "framing": "for"}],
            **{f"interaction.conditions.{factor}": [value] for factor, value in factors.items()},
            **({"population.size": [size]} if len(sizes) > 1 else {}),
            "interaction": [{**record, "units": sorted(own), "conditions": factors}],
        }

    return {
        "name": name,
        "description": "; ".join(filter(None, (mapping.source, mapping.licence))),
        "replicates": len(units),
        "population": {"size": max(sizes), "initial_opinions": "none"},
        "scale": {"points": list(mapping.scale.points), "labels": list(mapping.scale.labels)},
        "measurement": {"instruments": list(instruments)},
        "sweep": [axes(*each) for each in cells.items()],
    }


def _stance_first(item: tuple[str, Any]) -> tuple[bool, str]:
    return item[0] != STANCE, item[0]


# -- the table ---------------------------------------------------------------------------------------------


def _rows(table: pd.DataFrame | str | Path, mapping: PanelMapping) -> list[dict[str, str]]:
    """The rows of a table, each with its columns as texts; empty for what is missing."""
    import pandas as pd

    frame = table if isinstance(table, pd.DataFrame) else _read(Path(table))
    if absent := [column for column in mapping.columns if column not in frame.columns]:
        raise SpecError(
            f"the mapping {mapping.name!r} names {', '.join(map(repr, absent))}, which the table lacks; it has "
            f"{', '.join(map(str, frame.columns))}"
        )
    if twice := sorted({str(column) for column in frame.columns[frame.columns.duplicated()]}):
        raise SpecError(f"the table has the column {twice[0]!r} twice; give columns names of their own")
    if frame.empty:
        raise SpecError("the table has no rows; a panel needs at least one person with a rating")
    columns = list(mapping.columns)
    return [dict(zip(columns, map(_spelled, row), strict=True)) for row in frame[columns].itertuples(index=False)]


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read as a table, .csv or .parquet: {error}") from None


def _spelled(value: Any) -> str:
    """A cell as text, whole numbers without a point; empty where it is missing."""
    if value is None or value != value:  # NaN
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else printable(str(value)).strip()


class _Rows:
    """Reads rows of a table by a mapping; errors name row and column, rows from 1."""

    def __init__(self, mapping: PanelMapping) -> None:
        self._mapping, self._scale = mapping, mapping.scale
        self._ends = self._scale.highest + self._scale.lowest

    def number(self, row: Mapping[str, str], place: int, column: str) -> float:
        """A number; NaN for an empty cell."""
        try:
            found = float(row[column] or "nan")
        except ValueError:
            found = math.inf
        if math.isinf(found):
            raise SpecError(f"row {place}: {column!r} is {row[column]!r}; it must be a number or empty")
        return found

    def rating(self, row: Mapping[str, str], place: int, column: str) -> float | None:
        """A rating, turned round where the statement was worded against the topic; None for an empty cell."""
        found = self.number(row, place, column)
        if math.isnan(found):
            return None
        if found not in self._scale.points:
            raise SpecError(
                f"row {place}: {column!r} is {row[column]}, which is not on the scale; valid: "
                f"{', '.join(map(str, self._scale.points))}, or give the mapping other points"
            )
        return self._ends - found if self.turned(row) else found

    def turned(self, row: Mapping[str, str]) -> bool:
        """Whether the statement was worded against the topic."""
        return any(row[column] in values for column, values in self._mapping.reversed.items())

    def words(self, rating: float, row: Mapping[str, str]) -> str:
        """What a person was shown for its rating."""
        point = int(self._ends - rating if self.turned(row) else rating)
        return self._scale.labels[self._scale.points.index(point)]

    def said(self, row: Mapping[str, str], place: int) -> Iterator[_Said]:
        """What a row says of its person, in order of time."""
        mapping = self._mapping
        text = row[mapping.text] if mapping.text else ""
        others = {variable: self.rating(row, place, column) for variable, column in mapping.answers.items()}
        again = self.rating(row, place, mapping.retest) if mapping.retest else None
        if mapping.wave is None:
            ratings = [self.rating(row, place, column) for column in mapping.ratings]
            for step, rating in enumerate(ratings):
                last = step == len(ratings) - 1
                ofs = {STANCE: rating, **(others if last else {}), **({} if step else {RETEST: again})}
                shown = tuple(mapping.messages.get(row[column], row[column]) for column in mapping.read if row[column])
                if rating is not None:
                    spoken = text if last else ""
                    yield self._item(row, step, "", spoken, ofs, read=shown if last else ())
            return
        wave = self.number(row, place, mapping.wave)
        if math.isnan(wave):
            raise SpecError(f"row {place}: {mapping.wave!r} is empty; every row needs its wave")
        rating = self.rating(row, place, mapping.ratings[0])
        sender, recipient = (row[column] if column else "" for column in (mapping.sender, mapping.recipient))
        if text or rating is not None:
            ofs = {} if rating is None else {STANCE: rating, **others, RETEST: again}
            kind = row[mapping.kind] if mapping.kind else ""
            kind = mapping.kinds.get(kind, kind)
            if kind and kind not in RECORDED_KINDS:
                raise SpecError(
                    f"row {place}: {mapping.kind!r} is {kind!r}; valid: {', '.join(RECORDED_KINDS)}, or give kinds"
                )
            yield self._item(row, wave, kind, text, ofs, sender=sender, recipient=recipient)

    def _item(
        self,
        row: Mapping[str, str],
        step: float,
        kind: str,
        text: str,
        ratings: Mapping[str, float | None],
        **more: Any,
    ) -> _Said:
        known = {variable: rating for variable, rating in ratings.items() if rating is not None}
        usual = "post" if STANCE not in known else "report" if text else SELF_REPORT
        spoken = text or self.words(known[STANCE], row)
        return _Said(step, row[self._mapping.person], kind or usual, spoken, known, **more)  # type: ignore[arg-type]


def _records(rows: Sequence[Mapping[str, str]], mapping: PanelMapping) -> list[_Record]:
    """The records of all units and topics; waves become steps, from 0."""
    reader, records = _Rows(mapping), dict[tuple[str, str], _Record]()
    rated: set[tuple[str, ...]] = set()
    latest: dict[tuple[str, ...], tuple[float, float]] = {}
    ordered: dict[tuple[str, str], list[tuple[float, float, int, _Said]]] = defaultdict(list)
    for place, row in enumerate(rows, 1):
        for column in filter(None, (mapping.person, mapping.group, mapping.topic)):
            if not row[column]:
                raise SpecError(f"row {place}: {column!r} is empty; every row needs one")
        person, unit = row[mapping.person], row[mapping.group or mapping.person]
        topic = row[mapping.topic] if mapping.topic else mapping.name
        factors = {column: row[column] for column in mapping.conditions}
        factors |= {"wording": "against" if reader.turned(row) else "for"} if mapping.reversed else {}
        record = records.setdefault((unit, topic), _Record(unit, topic, factors))
        if record.conditions != factors:
            odd = next(name for name, value in factors.items() if record.conditions[name] != value)
            raise SpecError(
                f"row {place}: the condition {odd!r} is {factors[odd]!r}, and {record.conditions[odd]!r} in another "
                f"row of unit {unit!r}; name it as an attribute, for a condition holds for a unit and topic"
            )
        told = {column: row[column] for column in mapping.attributes if row[column]}
        record.people.setdefault(person, {}).update(told)
        for said in reader.said(row, place):
            order = float(place) if mapping.order is None else reader.number(row, place, mapping.order)
            mark = (unit, topic, person)
            if mapping.order is None and (said.step, order) < latest.get(mark, (-math.inf, 0.0)):
                raise SpecError(
                    f"row {place}: {mapping.wave or 'the row'!r} {said.step:g} of person {person!r} comes after "
                    f"{latest[mark][0]:g}; sort the table by wave, or name a column of the order"
                )
            latest[mark] = (said.step, order)
            key = (*mark, f"{said.step}", "" if mapping.order is None else f"{order}")
            if said.ratings and not said.sender.replace(person, ""):
                if key in rated:
                    where = f"wave {said.step:g}" if mapping.wave else "the table"
                    raise SpecError(
                        f"row {place}: person {person!r} has two ratings in {where}"
                        f"{f' on {topic!r}' if mapping.topic else ''}; give one row a person and wave"
                    )
                rated.add(key)
            ordered[unit, topic].append((said.step, order, place, said))
    waves = {step: number for number, step in enumerate(sorted({each[0] for own in ordered.values() for each in own}))}
    for which, own in ordered.items():
        own.sort(key=lambda each: each[:3])
        records[which].said = [said._replace(step=waves[step]) for step, _, _, said in own]
    found = [record for record in records.values() if any(STANCE in said.ratings for said in record.said)]
    if not found:
        raise SpecError(f"the table has no rating in {', '.join(mapping.ratings)}; a panel needs at least one")
    return found
