"""Freeze an experiment before its confirmatory runs, and report deviations afterwards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Undefined

import opinionsim
from opinionsim.errors import SpecError
from opinionsim.foundation.documents import validate
from opinionsim.foundation.frozen import Frozen
from opinionsim.foundation.provenance import digest_of_weights
from opinionsim.foundation.redaction import kept
from opinionsim.foundation.streams import canonical_json
from opinionsim.llm import in_process, module_of
from opinionsim.registry import find
from opinionsim.report._page_templates import TEMPLATES, sentences
from opinionsim.report._study_words import files_in
from opinionsim.specification import Experiment, ExperimentSpec, analysis_of, consent_of, manifest, wording_of
from opinionsim.store import AbsentError, DesignRow, Results, find_design, open_store

#: Name of this package among what is fixed.
_PACKAGE = "opinionsim"
#: Most characters of a value that a sentence shows.
_SHOWN = 160
#: A commit of the model hub.
_COMMIT = re.compile(r"[0-9a-f]{40}")
#: The letters with which the name of a model begins, behind provider and owner.
_FAMILY = re.compile(r"(?:.*[:/])?([a-z]+)", re.IGNORECASE)


# -- before the runs ---------------------------------------------------------------------------------------------------


def freeze(experiment: Experiment) -> dict[str, Any]:
    """Return the frozen manifest of an experiment, which can be run like a specification.

    Parameters
    ----------
    experiment : Experiment
        From :func:`opinionsim.load_experiment`.

    Returns
    -------
    dict
        JSON values: the manifest with ``frozen`` (:class:`opinionsim.foundation.frozen.Frozen`), and a seed drawn
        from its hash instead of the seed in the specification.

    Raises
    ------
    SpecError
        If the experiment is frozen already, or something in it cannot be frozen: a swept seed, recorded people, a
        missing text for people, weights that may change under their name, or a part that others cannot import.
    """
    if experiment.frozen is not None:
        raise SpecError(
            f"{experiment.spec.name} was frozen at {experiment.frozen.at}; freeze its specification instead"
        )
    specs = [cell.spec for each in (experiment, *experiment.variants.values()) for cell in each.cells]
    if len({spec.seed for spec in specs}) > 1:
        raise SpecError("sweep: seed cannot be frozen, because the frozen design sets it; sweep replicates instead")
    if all(spec.interaction.recorded for spec in specs):
        raise SpecError("interaction: people's texts are already recorded, so there is nothing to freeze")
    consent = consent_of(experiment)
    if consent is None and any(spec.seats for spec in specs):
        raise SpecError("ethics.consent is missing: the consent form for people at seats is part of the study")
    made = kept(manifest(experiment))
    wordings = {wording for spec in specs for _, wording in (wording_of(spec, experiment.resources),) if wording}
    frozen = Frozen.of(
        made,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        wordings=sorted(wordings),
        runs=len({run.run_id for run in experiment.runs}),
        fixed={
            _PACKAGE: opinionsim.__version__,
            **{name: told["code"] for name, told in made["environment"]["parts"].items()},
            **dict(item for spec in specs for item in _weights(spec)),
            **({} if consent is None else {"ethics.consent": consent.hash}),
        },
    )
    return {**made, "spec": {**made["spec"], "seed": frozen.seed}, "frozen": frozen.model_dump(mode="json")}


def _weights(spec: ExperimentSpec) -> Iterator[tuple[str, str]]:
    """Weights that are loaded into this process, and what fixes them: a hash of their contents, or their commit."""
    models = ((each.name, each.name.partition(":")[2], each.options) for each in spec.chat_models)
    loaded: list[tuple[str, Path, object]] = [
        (own, module_of(name).weights(own), options.get("revision"))
        for name, own, options in models
        if in_process(name)
    ]
    for each in (instrument.classifier for instrument in spec.instruments):
        if getattr(find("classifier", each.name).target, "loads_weights", False):
            model = str(each.options.get("model", each.name))
            loaded.append((model, Path(model).expanduser(), each.options.get("weights")))
    for name, place, stated in loaded:
        if not place.exists() and not _COMMIT.fullmatch(str(stated)):
            raise SpecError(
                f"{name}: these weights may change under their name; state the commit of 40 characters, of a model as "
                "revision and of a classifier as weights, or name a file or folder that is there"
            )
        yield name, digest_of_weights(place) if place.exists() else str(stated)


def preregistration(frozen: Mapping[str, Any], store: str) -> str:
    """Return a preregistration form in Markdown, filled from the frozen design; parts for the author are marked.

    Parameters
    ----------
    frozen : mapping
        Result of :func:`freeze`.
    store : str
        Address of the store of the pilot, whose runs are counted; it need not exist.

    Raises
    ------
    StoreError
        If the store exists and cannot be read.
    """
    name = frozen["spec"]["name"]
    known: tuple[str, ...] = (f"{store} contains no run under the name {name}.", _UNKNOWN)
    place = store.removeprefix("sqlite:///")
    if "://" in place or Path(place).is_file():
        with suppress(AbsentError):
            known = _counts(_Designs(store, name))
    # Not strict: a specification leaves out what does not apply to it.
    form, contrasts = TEMPLATES.overlay(undefined=Undefined), analysis_of(frozen["spec"]).contrasts
    told = {"known": known, "contrasts": contrasts, "data": files_in(frozen["contents"])}
    return form.get_template("preregistration.md").render(**frozen, **told)


# -- after the runs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """The frozen design of an experiment, deviations from it, and everything that was tried under its name.

    Attributes
    ----------
    frozen : dict or None
        ``at``, ``hash``, ``parts`` (hash of each part) and ``runs``; None if nothing was frozen.
    deviations : tuple of str
        A sentence for each deviation from what was frozen, with both values.
    counts : tuple of str
        Numbers of designs, runs, wordings, models and instruments under this name in the store, separately for pilot
        and confirmatory designs, with a note that the history does not cover others.
    reach : tuple of str
        Labels of claims that rest on one model family, or on one wording.
    """

    frozen: Mapping[str, Any] | None
    deviations: tuple[str, ...]
    counts: tuple[str, ...]
    reach: tuple[str, ...]


def history(results: Results) -> History:
    """Return the frozen design of an experiment and deviations from it; no text is read from the store.

    Parameters
    ----------
    results : Results
        Results of one design.
    """
    held = _Designs(results.url, results.name)
    found = results.manifest.get("frozen")
    frozen = None if found is None else validate(Frozen, found)
    told = None if frozen is None else frozen.model_dump(include={"at", "hash", "parts", "runs"})
    deviations = () if frozen is None else tuple(_deviations(results, frozen, held))
    return History(told, deviations, _counts(held), tuple(_reach(results, held)))


class _Designs:
    """All designs that a store holds under a name, with their runs."""

    def __init__(self, store: str, name: str) -> None:
        with open_store(store, write=False) as opened:
            last, _ = find_design(opened, name)
            designs = (row for row in opened.designs() if row.experiment_id == last.experiment_id)
            self.designs = sorted(designs, key=lambda row: row.design)
            self.runs = opened.registered({run.run_id for row in self.designs for run in row.runs})
        seeds = {validate(Frozen, entry).seed for row in self.designs if (entry := row.manifest.get("frozen"))}
        #: Designs by what their runs are; those of variants have the seed of what they are variants of.
        self.groups: dict[str, list[DesignRow]] = {}
        for row in self.designs:
            of = "confirmatory" if row.spec.get("seed") in seeds else "pilot" if seeds else "unfrozen"
            self.groups.setdefault(of, []).append(row)
        self.name = name
        #: Identities of designs that are variants of others.
        self.variants = {
            of for row in self.designs for of in row.manifest.get("environment", {}).get("variants", {}).values()
        }

    def begun(self, designs: Iterable[DesignRow]) -> list[Any]:
        """The runs of designs that have begun, each once."""
        ids = dict.fromkeys(run.run_id for row in designs for run in row.runs)
        return [self.runs[each] for each in ids if each in self.runs and self.runs[each].begun_at is not None]


#: What no store can tell.
_UNKNOWN = "This history does not cover other stores, other names, or what was removed from this store."


def _counts(held: _Designs) -> tuple[str, ...]:
    """Sentences that count all that a store holds under a name."""
    told = []
    for group, rows in held.groups.items():
        if not any(row.runs for row in rows):
            continue  # a study of units, which has no runs
        runs = held.begun(rows)
        told.append(
            {
                "group": group,
                "runs": len(runs),
                "wordings": len({run.wording for run in runs if run.wording}),
                "models": sorted({model for run in runs for model in _models(run.model)}),
                "instruments": len({each for row in rows for run in row.runs for each in run.instruments}),
            }
        )
    return tuple(sentences("history.txt", part="counts", held=held, told=told, unknown=_UNKNOWN))


def _deviations(results: Results, frozen: Frozen, held: _Designs) -> Iterator[str]:
    """A sentence for each deviation of one design from what was frozen, and for other designs of the same freeze."""
    for path, (then, now) in frozen.changed.items():
        yield f"{path}: {_spelled(now)} instead of {_spelled(then)}, which was frozen."
    for row in held.designs:
        other = row.manifest.get("frozen", {})
        if row.design != results.design and other.get("hash") == frozen.hash and other["changed"]:
            yield f"Design {row.design} was run from the same freeze with changes in {', '.join(other['changed'])}."
        if not other and row.spec.get("seed") == frozen.seed and row.design_id not in held.variants:
            yield f"Design {row.design} has the seed of the freeze but was run from a file that is not frozen."
    environment = results.manifest["environment"]
    codes = {name: told["code"] for name, told in environment["parts"].items()}
    for name, now in {_PACKAGE: environment["opinionsim"], **codes}.items():
        if name in frozen.fixed and frozen.fixed[name] != now:
            yield f"{name}: version {now} instead of {frozen.fixed[name]}, which was frozen."
    named = {name for model in results.runs["model"].dropna() for name in _models(model)}
    returned = {model for model in environment["models"] if not in_process(model)}
    if other := returned - named - {model.partition(":")[2] for model in named}:
        yield f"{', '.join(sorted(other))} answered; the frozen names are {', '.join(sorted(named))}."
    # Runs that are missing, too many, or worded otherwise.
    runs = results.runs.drop_duplicates("run_id")
    worded = runs["wording"][runs["begun_at"].notna()].dropna()
    yield from sentences(
        "history.txt",
        part="runs",
        frozen=frozen,
        states=runs["status"].value_counts().to_dict(),
        early=int((runs["begun_at"] < datetime.fromisoformat(frozen.at).timestamp()).sum()),
        n_runs=len(runs),
        worded=Counter(worded[~worded.isin(frozen.wordings)]),
    )


def _reach(results: Results, held: _Designs) -> Iterator[str]:
    """Labels of claims that one model family, or one wording, carries; variants that were carried out count."""
    variants = set(results.manifest["environment"].get("variants", {}).values())
    rows = [row for row in held.designs if row.design == results.design or row.design_id in variants]
    runs = [run for run in held.begun(rows) if run.status == "complete"]
    # Equations are no model family, and a stand-in widens nothing that is found of models.
    names = {model for run in runs if run.evidence != "equation" for model in _models(run.model)}
    names = names - {"scripted"} or names
    runs = [run for run in runs if names & {*_models(run.model)}]
    families = {found[1].lower() for model in names if (found := _FAMILY.match(model))}
    wordings = {run.wording for run in runs if run.wording}
    if len(families) == 1:
        yield f"One model family ({families.pop()}): results apply to this family; others were not tested."
    if len(wordings) == 1:
        yield f"One wording of the prompts ({wordings.pop()}): results may depend on it; others were not tried."


def _models(label: str | None) -> list[str]:
    """Names of chat models, of a label that joins them."""
    return label.split(" + ") if label else []


def _spelled(value: Any) -> str:
    """A value as a sentence shows it."""
    if value in (None, [], {}):
        return "nothing"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
