"""Instruments for recorded runs: the texts to code, and the rows of the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from opinionsim.assembly._loaded import LoadedParts
from opinionsim.foundation.redaction import kept
from opinionsim.measurement import Instrument, Reading, Text
from opinionsim.messages import Message, as_message
from opinionsim.schedules import Turn
from opinionsim.specification import PlannedRun
from opinionsim.store import InstrumentRow, OpinionRow, TurnRow


def instruments_by_run(runs: Iterable[PlannedRun], loaded: LoadedParts) -> dict[str, list[Instrument]]:
    """The instruments of each run, by run id; cells that share a run join their instruments and kinds of text.

    Parameters
    ----------
    runs : iterable of PlannedRun
        Every run of every cell.
    loaded : LoadedParts
        The classifiers of the experiment.
    """
    found: dict[str, dict[str, Instrument]] = {}
    for planned in runs:
        known = found.setdefault(planned.run_id, {})
        for each in loaded.instruments(planned.spec):
            before = known.get(each.instrument_id)
            known[each.instrument_id] = each if before is None else replace(each, kinds=each.kinds | before.kinds)
    return {run_id: list(known.values()) for run_id, known in found.items()}


def instrument_row(instrument: Instrument) -> InstrumentRow:
    """The store row of an instrument."""
    classifier, scale = instrument.classifier, instrument.scale
    return InstrumentRow(
        instrument.instrument_id,
        instrument.variable,
        f"{instrument.name or classifier.name}{' (whole replies)' * instrument.whole}",
        kept(classifier.options),
        scale.points,
        scale.labels,
        instrument.context,
        instrument.about,
        instrument.code,
    )


def stored_texts(rows: Sequence[TurnRow], externals: Mapping[str, Message | str]) -> dict[int, Text]:
    """Texts of a recorded run by turn, in the form that instruments need.

    Parameters
    ----------
    rows : sequence of TurnRow
        All turns of the run.
    externals : mapping of str to Message or str
        Messages from outside the run, which the store does not contain.
    """
    by_turn = {row.turn: row for row in rows}
    return {row.turn: _text(row, by_turn, externals) for row in rows}


def _text(row: TurnRow, by_turn: Mapping[int, TurnRow], externals: Mapping[str, Message | str]) -> Text:
    reads: list[int] = []
    received: list[str] = []
    for ref in row.reads:
        if isinstance(ref, str):
            received += [as_message(externals[ref]).text] if ref in externals else []
        elif Message(by_turn[ref].text, status=by_turn[ref].status).passed_on:
            reads.append(ref)
            received.append(by_turn[ref].text)
    site = Turn(row.turn, row.step, row.agent, row.act)
    return Text(site, row.kind, row.text, row.status, tuple(reads), tuple(received))


def opinion_rows(instrument: Instrument, coded: Iterable[tuple[int, int | None, Reading]]) -> list[OpinionRow]:
    """The store rows of an instrument's estimates."""
    return [
        OpinionRow(instrument.instrument_id, turn, each.value, each.off_scale, each.probabilities, about)
        for turn, about, each in coded
    ]
