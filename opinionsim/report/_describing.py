"""Descriptions in an archive: an ODD document, references, and metadata for repositories."""

from __future__ import annotations

import json
import mimetypes
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from opinionsim.analysis import Table
from opinionsim.foundation.bibliography import Publication, bibliography, cited
from opinionsim.foundation.provenance import docstring
from opinionsim.registry import find, installed, is_path, places
from opinionsim.report._page_templates import WORDS, filled, spelled
from opinionsim.report._study_words import DataFile, about_part, contents_of, files_in, is_on_record, is_recorded
from opinionsim.specification import endpoints
from opinionsim.store import Results

if TYPE_CHECKING:
    from opinionsim.report._study import Study

#: Parts that the registry knows, which are columns of the runs.
_PARTS = ("interaction", "network", "memory")


def data_files(results: Results) -> list[DataFile]:
    """The data that a study used, in the order of its manifest."""
    found = files_in({**results.manifest, "contents": contents_of(results)})
    people = int((results.agents["evidence"] == "human").sum()) if is_on_record(results) else 0
    return [each._replace(number=people, one="record") if people and each.one == "claim" else each for each in found]


def works(results: Results, tables: Iterable[Table]) -> list[Publication]:
    """The publications that a study uses: those that its data, its parts and the notes of its tables cite.

    They include those of its language models if the bibliography has them, and that of the ODD protocol.
    """
    texts = [*(each.source for each in data_files(results)), *_docstrings(results)]
    texts += [note for table in tables for note in table.notes]
    models = results.agents.loc[results.agents["evidence"] == "model", "model"].unique()
    named = " ".join([*models, *(each for name in models for each in results.answered.get(name, ()))]).lower()
    known = [each for each in bibliography().values() if each.fields.get("models", "\0") in named]
    return list({each.key: each for each in (*known, *cited("\n".join(texts)), *cited("Grimm et al. 2020"))}.values())


def _docstrings(results: Results) -> Iterator[str]:
    """The docstrings of the parts of the package that a study used, in which these say what they come from."""
    used = [*results.study.parts(results)]
    used += [("metric", each if isinstance(each, str) else each["name"]) for each in results.named_metrics]
    for kind, name in used:
        if name in places(kind):
            target = find(kind, name).target
            # That of a declaration is that of its parameters.
            yield docstring(getattr(target, "parameters", target))


def parts_of_runs(results: Results) -> Iterator[tuple[str, str]]:
    """Kind and name of the parts that runs used."""
    runs, agents = results.ordered_runs, results.agents
    for kind in _PARTS if not is_recorded(results) else ():
        yield from ((kind, name) for name in runs[kind].dropna().unique())
    for each in endpoints().values():
        yield from ((each.names, name) for name in agents.loc[agents["evidence"] == each.evidence, "model"].unique())
    yield from (("classifier", name) for name in results.opinions["classifier"].dropna().unique())


def bibtex(results: Results, tables: Iterable[Table]) -> str:
    """The publications, data and software that a study used, as BibTeX."""
    entries = [(each.kind, each.key, each.printed) for each in works(results, tables)]
    version = results.manifest.get("environment", {}).get("opinionsim", "")
    return filled("references.bib", entries=entries, data=data_files(results), version=version)


def references(results: Results, tables: Iterable[Table]) -> tuple[str, ...]:
    """The publications and the data that a study used, one per line."""
    data = (f"{each.name} ({each.held}): {each.source or 'no source is stated'}" for each in data_files(results))
    return (*(each.text for each in works(results, tables)), *data)


def _equations(results: Results) -> Iterator[Any]:
    """What agents follow, each as its declaration; that of the user's own where it is allowed."""
    own = results.manifest["environment"].get("parts", {}) if results.own_parts else {}
    followed = {each.names for each in endpoints().values()}
    for kind, name in results.study.parts(results):
        if kind in followed and (name in own or name in places(kind)):
            yield find(kind, name).target


def odd(study: Study) -> str:
    """The ODD document of a study (overview, design concepts, details; Grimm et al. 2020)."""
    results = study.results
    return filled(
        "odd.md",
        study=study,
        results=results,
        told=defaultdict(str, study.design),
        kind=results.study,
        agents=len(results.agents.drop_duplicates(["run_id", "agent"])),
        recorded=is_recorded(results),
        apart=results.spec.get("independent_over"),
        parts=list(_parts(results)),
        models=list(_equations(results)),
        fields=list(_fields(_stated(results), results.study.schema())),
        data=data_files(results),
    )


def _parts(results: Results) -> Iterator[tuple[str, str]]:
    """The parts that runs were made of, each with what its documentation says; not those of the user's own."""
    for kind in _PARTS if results.run_ids else ():
        for name in results.ordered_runs[kind].dropna().unique():
            if not is_path(name):
                told = about_part(kind, name) if installed(kind, name) else ("It is not installed here.",)
                yield f"{kind.capitalize()} `{name}`", " ".join(filter(None, told))


def _stated(results: Results) -> dict[str, Any]:
    """The specification with all values of what varies in the place of one."""
    spec: dict[str, Any] = json.loads(json.dumps(results.manifest.get("spec", results.spec)))
    grids = spec["sweep"] if isinstance(spec.get("sweep"), list) else [spec.get("sweep") or {}]
    varied: dict[str, list[Any]] = {}
    for axis, values in ((axis, values) for grid in grids for axis, values in grid.items()):
        known = varied.setdefault(axis, [])
        known += [each for each in values if each not in known]
    for axis, values in varied.items():
        *folders, last = axis.split(".")
        node = spec
        for name in folders:
            node = node.setdefault(name, {}) if isinstance(node, dict) else None
        if isinstance(node, dict):
            node[last] = f"varied: {spelled(values)}"
    return spec


def _fields(value: Any, schema: Mapping[str, Any], path: str = "", told: str = "") -> Iterator[tuple[str, Any, str]]:
    """Path, value and meaning of each field of a specification that says something."""
    own = [schema, *schema.get("anyOf", ())]
    known = [schema["$defs"].get(str(each.get("$ref", "")).rpartition("/")[2], each) for each in own]
    fields = {name: each for one in known for name, each in one.get("properties", {}).items()}
    if isinstance(value, Mapping) and (fields or not path):
        for name, each in value.items():
            within = {**fields.get(name, {}), "$defs": schema["$defs"]}
            yield from _fields(each, within, f"{path}.{name}".lstrip("."), within.get("description", ""))
    elif value not in (None, "", [], {}) and path != "sweep":
        yield path, value, told


def crate(study: Study, files: Iterable[tuple[str, int]], published: str) -> str:
    """The metadata of an archive as RO-Crate 1.1, in JSON.

    Parameters
    ----------
    study : Study
        The study in the archive.
    files : iterable of (str, int)
        Path of each file, with slashes, and its size in bytes.
    published : str
        Day on which the archive was made, as YYYY-MM-DD.
    """
    parts = WORDS["parts"]
    listed = [
        {
            "name": name,
            "about": parts.get(name) or parts[f"{name.partition('/')[0]}/"],
            "size": size,
            "kind": mimetypes.guess_type(name)[0] or "text/plain",
        }
        for name, size in files
    ]
    return filled("ro-crate-metadata.json", study=study, files=listed, published=published)
