"""What an archive says of itself: an ODD document, references, and metadata that repositories read."""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from opinionsim.classifiers import DECIDED, RECORDED
from opinionsim.metrics import find_metric
from opinionsim.registry import described, find, installed, is_path, places
from opinionsim.report._page_templates import WORDS, filled
from opinionsim.report._released import nodes
from opinionsim.report._study_words import contents_of, is_recorded
from opinionsim.specification import json_schema
from opinionsim.store import Results

if TYPE_CHECKING:
    from opinionsim.classic import ClassicModel
    from opinionsim.report._study import Study

#: Authors, year in parentheses, title, and the rest, as sources are written.
_SOURCE = re.compile(r"(?P<authors>[^():]{2,400}?)\s*\((?P<year>\d{4})\w?\)\.\s+(?P<title>.{2,300}?)\.\s+(?P<rest>.*)")
_DOI = re.compile(r"doi:\s*(10\.\d{4,9}/\S+?)\.?(?=\s|$)")
#: Between two authors with initials, and between two family names alone.
_INITIALS, _NAMES = re.compile(r"(?<=\.),\s+|\s+(?:and|&)\s+|;\s+"), re.compile(r",\s+|\s+(?:and|&)\s+")
#: Parts that the registry knows, which are columns of the runs; and a reference to Python in what it says of them.
_PARTS, _ROLE = ("interaction", "memory"), re.compile(r":\w+:`~?([^`]+)`")


class Used(NamedTuple):
    """Something that a study used: its name, where it comes from, and its licence."""

    name: str
    source: str
    licence: str = ""


def sources(results: Results) -> Iterator[Used]:
    """The data, metrics and models that a study used, each with its sources."""
    stated = nodes({**results.manifest, "contents": contents_of(results)})
    files = ((name, node) for name, node in stated if isinstance(node, Mapping) and isinstance(node.get("source"), str))
    yield from dict.fromkeys(
        Used(str(node.get("name") or name), " ".join(node["source"].split()), node.get("licence", ""))
        for name, node in files
        if node["source"]
    )
    for metric in results.named_metrics:
        known = find_metric(metric if isinstance(metric, str) else metric["name"])
        if known.source:
            yield Used(known.name, f"{known.source}{known.doi and f'. doi:{known.doi}'}")
    agents = None if results.swept else results.agents.drop_duplicates(["evidence", "model"])
    played = results.points if agents is None else agents[agents["evidence"] == "equation"]
    for model in _equations(results, played["model"]):
        yield from (Used(model.title, each) for each in model.source)
    if agents is not None:
        for name in agents.loc[agents["evidence"] == "model", "model"]:
            answered = ", ".join(results.answered.get(name, []))
            yield Used(name, f"Language model{answered and f', which answered as {answered}'}")
        for name in sorted(set(results.opinions["classifier"].dropna()) - {DECIDED, RECORDED}):
            yield Used(name, "Classifier of opinionsim, by which texts were coded")


def _equations(results: Results, names: pd.Series[Any]) -> Iterator[ClassicModel]:
    """The classic models among names of models; those of the user's own where they are allowed."""
    parts = results.manifest["environment"].get("parts", {}) if results.own_parts else {}
    own = [name for name, told in parts.items() if told["kind"] == "classic_model"]
    for name in names.drop_duplicates():
        if name in own or name in places("classic_model"):
            yield find("classic_model", name).target


def bibtex(results: Results) -> str:
    """The models, data and software of a study as BibTeX."""
    references: dict[str, dict[str, str]] = {}
    for each in sources(results):
        stem = re.sub(r"[^a-z0-9]+", "-", each.name.lower()).strip("-") or "source"
        key = next(key for n in range(1, 1000) if (key := stem if n == 1 else f"{stem}-{n}") not in references)
        found = _SOURCE.match(each.source)
        told = found.groupdict() if found else {"authors": "", "year": "", "title": each.name, "rest": each.source}
        between = _INITIALS if "." in told["authors"] else _NAMES
        rest = _DOI.sub("", told["rest"]).strip(" .")
        references[key] = {
            **told,
            "authors": " and ".join(filter(None, between.split(told["authors"]))),
            "doi": "".join(_DOI.findall(each.source)[:1]),
            "note": f"{rest}. Licence: {each.licence}" if each.licence else rest,
        }
    version = results.manifest.get("environment", {}).get("opinionsim", "")
    return filled("references.bib", references=references, version=version)


def odd(study: Study) -> str:
    """The ODD document of a study (overview, design concepts, details; Grimm et al. 2020)."""
    results = study.results
    models = results.points["model"] if results.swept else results.agents["model"]
    return filled(
        "odd.md",
        study=study,
        results=results,
        runs=None if results.swept else results.runs.drop_duplicates("run_id"),
        recorded=is_recorded(results),
        apart=results.spec.get("independent_over"),
        parts=list(_parts(results)),
        models=list(_equations(results, models)),
        fields=list(_fields(results.spec, json_schema())),
        sources=list(sources(results)),
    )


def _parts(results: Results) -> Iterator[tuple[str, str]]:
    """The parts that runs were made of, each with what its documentation says; not those of the user's own."""
    for kind in () if results.swept else _PARTS:
        for name in results.ordered_runs[kind].dropna().unique():
            if not is_path(name):
                about = (
                    described(find(kind, name).target)[:2] if installed(kind, name) else ("It is not installed here.",)
                )
                told = " ".join(filter(None, about))
                yield f"{kind.capitalize()} {name}", _ROLE.sub(r"`\1`", told)


def _fields(value: Any, schema: Mapping[str, Any], path: str = "", told: str = "") -> Iterator[tuple[str, str, str]]:
    """Path, value and meaning of each field of a specification that says something."""
    own = [schema, *schema.get("anyOf", ())]
    known = [schema["$defs"].get(str(each.get("$ref", "")).rpartition("/")[2], each) for each in own]
    fields = {name: each for one in known for name, each in one.get("properties", {}).items()}
    if isinstance(value, Mapping) and fields:
        for name, each in value.items():
            within = {**fields.get(name, {}), "$defs": schema["$defs"]}
            yield from _fields(each, within, f"{path}.{name}".lstrip("."), within.get("description", ""))
    elif value not in (None, "", [], {}):
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), told


def crate(study: Study, files: Iterable[tuple[str, int]], published: str) -> str:
    """The metadata of an archive as RO-Crate 1.1, in JSON.

    Parameters
    ----------
    study : Study
        What the archive is of.
    files : iterable of (str, int)
        Path of each file, with slashes, and its size in bytes.
    published : str
        Day on which it was made, as YYYY-MM-DD.
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
