"""A study: everything about one experiment, gathered once for a page or an archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from opinionsim.analysis import Table
from opinionsim.errors import MeasurementError, SpecError, StoreError
from opinionsim.metrics import BY_MODELS, WITHOUT_FINDING, evidence_statement
from opinionsim.registry import places
from opinionsim.report._checklist import checklist
from opinionsim.report._describing import references
from opinionsim.report._fitting_figures import Drawn, figures_of
from opinionsim.report._freeze import History, history
from opinionsim.report._quoted_texts import samples, shifts
from opinionsim.report._released import released
from opinionsim.report._study_tables import naming_models, tables_of
from opinionsim.report._study_words import CHEAPER, caveats, design, methods, statements, usable
from opinionsim.store import Results


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that a page or an archive says about one experiment.

    Attributes
    ----------
    results : Results
        The results, as they may be passed on.
    title : str
        Name of the experiment and the kind of evidence.
    stamp : str
        Note for every title: a scripted stand-in, runs under way, or people who withdrew; otherwise empty.
    question : str
        The question that the specification states, or its description; empty if it has neither.
    usable : str
        Number of agents and runs behind the numbers of opinions; empty if there are none.
    design : tuple of (str, str)
        The design in words, by labels.
    figures : tuple of Drawn
        The figures that fit.
    tables : tuple of Table
        All tables, those of opinions first. Names of tables that only a report shows begin with the name of the part
        that makes them.
    statements : tuple of str
        Sentences about numbers in the tables, except about rows of the scripted stand-in.
    shifts : tuple of dict
        The largest changes of opinion, with what was read.
    samples : tuple of dict
        The beginnings of some runs.
    cost : tuple of tuple of str
        For each model that answered, its name, calls, tokens in, tokens out and money, as printed.
    versions : tuple of (str, str)
        Packages with their versions, and the commit.
    methods : str
        One paragraph on methods.
    references : tuple of str
        Sources that were used.
    caveats : tuple of str
        Caveats for readers.
    history : History
        The frozen design, deviations from it, and how much was tried under the name.
    checklist : tuple of (str, str)
        Items that a paper must report about a study with language models, and what the record says about each.
    """

    results: Results
    title: str
    stamp: str
    question: str
    usable: str
    design: tuple[tuple[str, str], ...]
    figures: tuple[Drawn, ...]
    tables: tuple[Table, ...]
    statements: tuple[str, ...]
    shifts: tuple[dict[str, Any], ...]
    samples: tuple[dict[str, Any], ...]
    cost: tuple[tuple[str, ...], ...]
    versions: tuple[tuple[str, str], ...]
    methods: str
    references: tuple[str, ...]
    caveats: tuple[str, ...]
    history: History
    checklist: tuple[tuple[str, str], ...] = ()


def study(results: Results) -> Study:
    """Gather everything that the page of an experiment shows.

    Parameters
    ----------
    results : Results
        The results, also of an experiment under way.

    Returns
    -------
    Study
        The study, without texts that may not be passed on.

    Raises
    ------
    StoreError
        If the store cannot be read or is damaged.
    """
    results = released(results)
    tables, lacking = _tables(results)
    stated = evidence_statement([*results.units["evidence"]] or [results.manifest["evidence"]])
    figures, told = tuple(figures_of(results)), design(results)
    spec, past = results.spec, history(results)
    # Only what is found of language models can hang on one family of them, or on one wording of the prompts.
    reach = past.reach if BY_MODELS & set(results.units["evidence"]) else ()
    made = Study(
        results=results,
        title=f"{results.name}: {stated}",
        stamp="; ".join(_stamps(results)),
        question=" ".join((spec.get("question") or spec.get("description") or "").split()),
        usable=usable(tables),
        design=tuple(told.items()),
        figures=figures,
        tables=tuple(tables),
        statements=tuple(statements(tables)),
        shifts=shifts(results) if results.run_ids else (),
        samples=samples(results) if results.run_ids else (),
        cost=tuple(_cost(results)),
        versions=tuple(_versions(results)),
        methods=methods(results, told),
        references=references(results, tables),
        caveats=(
            *lacking,
            *caveats(results),
            *left_out(results),
        ),
        history=replace(past, deviations=tuple(results.shown("", past.deviations)), reach=reach),
    )
    return replace(made, checklist=checklist(made))


def left_out(results: Results) -> Iterator[str]:
    """Sentences on parts that are not among tables and figures: not allowed, not installed, or failed."""
    if results.own and not results.own_parts:
        yield f"Your own metrics, tables and figures, left out: {', '.join(results.own)}."
    if results.not_installed:
        yield f"Not installed, and left out: {', '.join(results.not_installed)}."
    yield from (f"Failed, and left out: {results.shown('', each)}." for each in results.failed.values())


def _tables(results: Results) -> tuple[list[Table], list[str]]:
    """All tables, and a sentence on why there are none of a kind."""
    made, lacking = list[Table](), list[str]()
    try:
        made += tables_of(results)
    except (SpecError, MeasurementError) as error:
        lacking.append(f"No table of results: {error}.")
    for name, place in places("report").items() if results.run_ids else ():
        brought = place.imported("report", name)
        # Those that do not fit are left out.
        with suppress(SpecError, StoreError):
            found = naming_models(results, brought.report_tables(results))
            made += [replace(each, name=f"{name}-{each.name}") for each in found]
    return made, lacking


def _stamps(results: Results) -> Iterator[str]:
    """What must stand in every title."""
    if results.under_way:
        yield f"UNDER WAY: {results.under_way} of {len(results.run_ids)} runs were in progress"
    runs = results.runs.drop_duplicates("run_id")
    if stand_ins := set(runs["evidence"]).intersection(WITHOUT_FINDING):
        yield evidence_statement(stand_ins)
    if withdrawn := int((runs["status"] == "withdrawn").sum()):
        yield f"{withdrawn} {'run is' if withdrawn == 1 else 'runs are'} withdrawn by people who took part"


def _cost(results: Results) -> Iterator[tuple[str, ...]]:
    """Calls, tokens and money by model and lane."""
    for (model, lane), own in results.calls.groupby(["model", "lane"], dropna=False):
        known = [own[name].sum(min_count=1) for name in ("input_tokens", "output_tokens", "cost")]
        forms = zip(("{:,.0f}", "{:,.0f}", "{:,.2f}"), known, strict=True)
        told = ("not known" if pd.isna(each) else form.format(each) for form, each in forms)
        yield (str(model) + (f" ({lane})" if lane in CHEAPER else ""), f"{len(own):,}", *told)


def _versions(results: Results) -> Iterator[tuple[str, str]]:
    """What the study was carried out with."""
    made = results.manifest.get("environment", {})
    for name in ("opinionsim", "python"):
        if name in made:
            yield name, str(made[name])
    yield from made.get("packages", {}).items()
    git = made.get("git") or {}
    if git.get("commit"):
        yield "commit", git["commit"] + (" with changes" if git.get("dirty") else "")
    for name, models in results.answered.items():
        yield f"model {name}", ", ".join(models)
