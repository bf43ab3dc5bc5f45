"""Store an experiment: its instruments, its runs and its design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import opinionsim
from opinionsim import specification
from opinionsim.assembly import instrument_row
from opinionsim.foundation.documents import validate
from opinionsim.foundation.frozen import Frozen
from opinionsim.foundation.redaction import kept
from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.planning import RunCounts, counts_by_run
from opinionsim.running._context import Shared
from opinionsim.store import DesignRow, ExperimentRun, RunRow


class Inputs(NamedTuple):
    """Inputs of a run that its identity does not include."""

    digest: str
    """Digest of the texts of its prompts, the version of the package, and `parts`."""
    wording: str | None
    """Wording of its prompts; None if there are none."""
    parts: Mapping[str, str]
    """Code of user-defined parts that can affect the run, by name."""


class Registration:
    """Stores the experiment of a runner. Call the methods that write in the thread of the store.

    Attributes
    ----------
    calls : dict of str to int
        Expected calls of each run that may be carried out; empty before :meth:`save`.
    """

    def __init__(self, context: Shared) -> None:
        self._context = context
        self._inputs: dict[int, Inputs] = {}
        self.calls: dict[str, int] = {}
        self._counted: dict[str, RunCounts] = {}

    def save_instruments(self, runs: list[specification.PlannedRun]) -> None:
        """Store the instruments of runs; refuse a changed instrument."""
        instruments = self._context.instruments
        found = {each.instrument_id: each for planned in runs for each in instruments[planned.run_id]}
        for instrument in found.values():
            self._context.store.save_instrument(instrument_row(instrument))

    def save(self) -> None:
        """Store the experiment: first its instruments, then its runs and its design."""
        context = self._context
        self.save_instruments(context.distinct)
        states = context.store.states([planned.run_id for planned in context.distinct])
        # Counting takes the longer the more steps there are, and of complete runs nothing is to be made.
        complete = {run_id for run_id, state in states.items() if state.status == "complete" and not context.fresh}
        left = {planned.run_id for planned in context.distinct} - complete
        self._counted = counts_by_run(context.experiment, context.loaded, left) if left else {}
        self.calls = {run_id: counted.calls for run_id, counted in self._counted.items()}
        context.store.register([self._run_row(each) for each in context.distinct if each.run_id not in states])
        self.save_design()

    def save_design(self) -> None:
        """Store the design: runs, specification, and the model identities returned so far."""
        experiment, store = self._context.experiment, self._context.store
        topics = {id(planned.cell): experiment.resources.topic(planned.spec.topic) for planned in experiment.runs}
        runs = tuple(
            ExperimentRun(
                planned.run_id,
                planned.cell.instrument_id,
                planned.replicate,
                planned.block,
                planned.cell.label,
                planned.cell.axes,
                {each.instrument_id: tuple(sorted(each.kinds)) for each in planned.cell.instruments},
                planned.spec.interaction.every_report,
                planned.spec.uncounted,
                planned.spec.measurement.least_measured,
                topics[id(planned.cell)].title,
                planned.spec.interaction.declared,
                planned.redraw,
            )
            for planned in experiment.runs
        )
        returned = store.models(planned.run_id for planned in self._context.planned).values()
        models = sorted({model for found in returned for model, _ in found if model})
        found, spec = kept(specification.recorded_manifest(experiment, models=models)), experiment.spec
        identity = (self._context.experiment_id, spec.name, specification.design_id(experiment))
        known = next((row for row in store.designs(identity[0]) if row.design_id == identity[-1]), None)
        if experiment.frozen is None and known is not None and (frozen := known.manifest.get("frozen")):
            # A copy without the mark is the same design, which was frozen all the same.
            found["frozen"] = validate(Frozen, frozen).against(found).model_dump(mode="json")
        store.save_design(DesignRow(*identity, kept(spec.model_dump(mode="json")), found, runs))

    def inputs(self, planned: specification.PlannedRun) -> Inputs:
        """The inputs of a run."""
        key = id(planned.cell)
        if key not in self._inputs:
            spec = planned.spec
            (content, wording), parts = (
                specification.wording_of(spec, self._context.experiment.resources),
                specification.own_parts_code(spec),
            )
            self._inputs[key] = Inputs(digest(canonical_json([opinionsim.__version__, content, parts])), wording, parts)
        return self._inputs[key]

    def _run_row(self, planned: specification.PlannedRun) -> RunRow:
        spec, resources = planned.spec, self._context.experiment.resources
        topic, claim = resources.topic(spec.topic), resources.claim(spec)
        size = spec.size
        network = spec.interaction.contacts
        bare = not (spec.prompted and spec.interaction.role_play)
        summary = {
            "seed": spec.seed,
            "topic": topic.name,
            "category": topic.category,
            "framing": "" if claim is None else claim.framing,
            "claim": "" if claim is None else claim.text,
            "task": spec.task,
            "truth": None if claim is None else claim.truth(spec.scale.scale()),
            "confirmation_bias": None if bare else spec.cognition.confirmation_bias,
            "memory": _memory(spec) if spec.prompted else None,
            "world": None if bare else spec.world,
            "model": "" if spec.interaction.recorded or (spec.seats and not spec.chat_models) else spec.model_label,
            "interaction": spec.interaction.kind,
            "network": None if network is None else network.kind,
            "n_agents": size,
            "steps": spec.interaction.steps_for(size),
            "event_steps": "; ".join(specification.event_labels(spec.events)) or None,
            "dropped_turns": self._counted[planned.run_id].dropped,
        }
        evidence = self._context.loaded.evidence(spec, resources.pack(spec.pack))
        identity = (planned.run_id, planned.replicate, planned.block, evidence, planned.cell.fields)
        return RunRow(*identity, summary, self.calls[planned.run_id], *self.inputs(planned))


def _memory(spec: specification.ExperimentSpec) -> str:
    """Name of the memory that agents have; `none` where they do not remember."""
    return spec.cognition.memory.name if spec.interaction.remembers else "none"
