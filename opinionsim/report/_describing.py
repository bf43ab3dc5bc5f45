"""What an archive says of itself: an ODD document, references, and metadata that repositories read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2

from opinionsim.classic import find_model
from opinionsim.errors import OpinionSimError
from opinionsim.registry import described, find, is_path
from opinionsim.specification import json_schema

if TYPE_CHECKING:
    from opinionsim.report._study import Study
    from opinionsim.store import Results

#: Authors, year in parentheses, title, and the rest, as sources are written.
_SOURCE = re.compile(
    r"(?P<authors>[^():]{2,400}?)\s*\((?P<year>\d{4}[a-z]?)\)\.\s+(?P<title>.{2,300}?)\.\s+(?P<rest>.*)", re.S
)
_DOI = re.compile(r"doi:\s*(10\.\d{4,9}/\S+?)\.?(?=\s|$)")
_ARXIV = re.compile(r"arXiv[:\s]\s*(\d{4}\.\d{4,5})")
#: What BibTeX reads as commands.
_BIBTEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
#: Fields of a specification whose values name parts that the registry knows, by kind.
_PARTS = {"interaction": ("interaction", "kind"), "memory": ("cognition", "memory")}

#: What the parts of an archive are: (name, of a file or folder with a slash behind it; what it is).
PARTS: Mapping[str, str] = {
    "README.md": "What this archive is, and how to check it",
    "report.html": "The study on one page: open it in a browser",
    "odd.md": "Description of the model in the ODD protocol, filled from the specification",
    "references.bib": "Models, data and software used, as BibTeX",
    "specification.yaml": "The experiment as it was specified, with all defaults",
    "manifest.json": "The experiment by content, which `opinionsim run` carries out again",
    "archive.json": "What `opinionsim verify` needs: the runs of the design, and how tables were made",
    "prompts/": "Every literal prompt once (`prompts.jsonl`), and the templates they were made from (`packs`)",
    "transcripts/": "Every run as text: who said what, after reading what",
    "frames/": "The data, and their dictionary (`codebook.csv`)",
    "tables/": "Every table: unrounded (`.csv`), to read (`.txt`), for LaTeX (`.tex`)",
    "figures/": "Every figure as PDF",
    "rebuild.py": "Makes the main table again from the frames with pandas alone",
    "ro-crate-metadata.json": "What all of this is, for repositories and machines (RO-Crate 1.1)",
    "SHA256SUMS": "Checksum of every file, as `sha256sum --check` reads them",
    "SHA256SUMS.sha256": "Checksum of that list: one line that stands for the whole archive",
}


def template(name: str) -> jinja2.Template:
    """A template of plain text, in which what is missing is an error."""
    loader = jinja2.PackageLoader("opinionsim.report")
    # No page is made of these: they are Markdown and Python, and escaping for HTML would garble them.
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701
    )
    environment.filters["cell"] = lambda text: " ".join(str(text).split()).replace("|", r"\|")
    return environment.get_template(name)


class Field(NamedTuple):
    """A field of a specification: its path, its value here, and what the schema says of it."""

    path: str
    value: str
    meaning: str


def fields(spec: Mapping[str, Any]) -> Iterator[Field]:
    """The fields of a resolved specification, in order, with what their schema says of them."""
    schema = json_schema()
    definitions = schema.get("$defs", {})

    def within(value: Any, node: Mapping[str, Any], path: str) -> Iterator[Field]:
        options = [node, *node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())]
        known = [definitions.get(str(each.get("$ref", "")).rpartition("/")[2], each) for each in options]
        named = {name: each for one in known for name, each in one.get("properties", {}).items()}
        if isinstance(value, Mapping) and named:
            for name, each in value.items():
                yield from within(each, named.get(name, {}), f"{path}.{name}" if path else name)
        elif value not in (None, "", [], {}):
            yield Field(path, str(value), str(node.get("description", "")))

    return within(spec, schema, "")


def odd(study: Study) -> str:
    """The ODD document of a study (overview, design concepts, details; Grimm et al. 2020)."""
    results = study.results
    spec, parts = results.spec, []
    for kind, (section, field) in _PARTS.items():
        value = spec.get(section, {}).get(field)
        name = value.get("name") if isinstance(value, Mapping) else value
        if isinstance(name, str) and not is_path(name):
            parts.append((f"{kind} {name}", *described(find(kind, name).target)[:2]))
    models = [(name, find_model(name)) for name in _classic(results)]
    return template("odd.md").render(
        study=study,
        results=results,
        parts=parts,
        models=models,
        fields=list(fields(spec)),
        sources=[each for each in _sources(results.manifest)],
        runs=None if results.swept else results.runs.drop_duplicates("run_id"),
    )


def bibtex(results: Results) -> str:
    """The models, data and software that results rest on, as BibTeX."""
    environment = results.manifest.get("environment", {})
    version = environment.get("opinionsim", "")
    entries = [
        (
            "opinionsim",
            "software",
            {
                "title": f"opinionsim {version}",
                "author": "{opinionsim contributors}",
                "note": "Opinion dynamics with language-model agents",
            },
        )
    ]
    for name in _classic(results):
        entries += [
            (f"{name}{place or ''}", *_reference(each, f"Model {name}"))
            for place, each in enumerate(find_model(name).source)
        ]
    for name in environment.get("models", []):
        entries.append(
            (name, "misc", {"title": name, "note": "Language model, by the name that its provider returned"})
        )
    if not results.swept:
        asked = results.agents.loc[results.agents["evidence"] == "model", "model"]
        for name in asked.dropna().unique():
            entries.append((name, "misc", {"title": name, "note": "Language model, as it was asked for"}))
        for name in results.opinions["classifier"].dropna().unique():
            entries.append(
                (
                    f"classifier {name}",
                    "misc",
                    {"title": f"Classifier {name}", "note": f"Instrument, of opinionsim {version}"},
                )
            )
    for name, source, licence in _sources(results.manifest):
        kind, known = _reference(source, name)
        entries.append((name, kind, known | ({"annote": f"Licence: {licence}"} if licence else {})))
    keys: dict[str, None] = {}
    return "\n".join(
        _entry(_key(name, keys), kind, known)
        for name, kind, known in dict.fromkeys((name, kind, tuple(known.items())) for name, kind, known in entries)
    )


def _key(name: str, taken: dict[str, None]) -> str:
    """A key that BibTeX takes, and that no other entry has."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "source"
    key = next(each for n in range(len(taken) + 1) if (each := stem if not n else f"{stem}-{n + 1}") not in taken)
    taken[key] = None
    return key


def _entry(key: str, kind: str, known: Sequence[tuple[str, str]]) -> str:
    told = [f"  {name} = {{{value if value.startswith('{') else _escaped(value)}}}" for name, value in known if value]
    return f"@{kind}{{{key},\n" + ",\n".join(told) + "\n}\n"


def _escaped(text: str) -> str:
    return "".join(_BIBTEX.get(sign, sign) for sign in " ".join(text.split()))


def _reference(source: str, name: str) -> tuple[str, dict[str, str]]:
    """Type and fields of the entry of a source; one that is no reference becomes a note."""
    source = " ".join(source.split())
    found = _SOURCE.match(source)
    identifiers = {"doi": "".join(_DOI.findall(source)[:1]), "eprint": "".join(_ARXIV.findall(source)[:1])}
    if not found:
        return "misc", {"title": name, "note": source, **identifiers}
    authors = [each.strip() for each in re.split(r"(?<=\.),\s+|\s+(?:and|&)\s+|;\s+", found["authors"]) if each.strip()]
    if not any("." in each for each in authors):
        # Family names alone, with commas between them.
        authors = [each.strip() for each in re.split(r",\s+|\s+(?:and|&)\s+", found["authors"])]
    told = {"author": " and ".join(authors), "year": found["year"], "title": found["title"]}
    rest = _DOI.sub("", found["rest"]).strip(" .")
    return "misc", {**told, "howpublished": rest, **identifiers}


def _classic(results: Results) -> list[str]:
    """Names of the classic models of an experiment."""
    spec = results.spec
    named = (
        results.points["model"].unique()
        if results.swept
        else results.agents.loc[results.agents["evidence"] == "equation", "model"].unique()
    )
    found = []
    for name in map(str, named):
        try:
            found.append(find_model(name.split(" ")[0]).name)
        except OpinionSimError:
            continue
    return list(dict.fromkeys(found)) if spec else []


def _sources(value: Any, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Name, source and licence of everything in JSON values that states a source."""
    if isinstance(value, Mapping):
        if isinstance(value.get("source"), str) and value["source"]:
            yield str(value.get("name") or value.get("title") or key), value["source"], str(value.get("licence", ""))
        for name, each in value.items():
            yield from _sources(each, str(name))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _sources(each, key)


def crate(study: Study, files: Iterable[tuple[str, int]], published: str) -> dict[str, Any]:
    """The metadata of an archive as RO-Crate 1.1.

    Parameters
    ----------
    study : Study
        What the archive is of.
    files : iterable of (str, int)
        Path of each file, with slashes, and its size in bytes.
    published : str
        Day on which it was made, as YYYY-MM-DD.
    """
    types = {
        "csv": "text/csv",
        "html": "text/html",
        "json": "application/json",
        "pdf": "application/pdf",
        "py": "text/x-python",
        "md": "text/markdown",
        "yaml": "application/yaml",
    }
    listed = []
    for path, size in files:
        top = path.split("/")[0]
        about = {"description": PARTS[top]} if top in PARTS else {"description": PARTS.get(f"{top}/", "")}
        listed.append(
            {
                "@id": path,
                "@type": "File",
                "name": path,
                "contentSize": str(size),
                "encodingFormat": types.get(path.rpartition(".")[2], "text/plain"),
                **about,
            }
        )
    licence = "To be stated by whoever publishes this archive; the licences of data used stand in references.bib."
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": study.title,
        "description": study.question or f"An experiment carried out with opinionsim: {study.results.name}.",
        "datePublished": published,
        "license": {"@id": "#licence"},
        "hasPart": [{"@id": each["@id"]} for each in listed],
        "mentions": {"@id": "#opinionsim"},
    }
    version = study.results.manifest.get("environment", {}).get("opinionsim", "")
    return {
        "@context": "https://w3id.org/ro/crate/1.1/context",
        "@graph": [
            {
                "@id": "ro-crate-metadata.json",
                "@type": "CreativeWork",
                "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
                "about": {"@id": "./"},
            },
            root,
            {"@id": "#licence", "@type": "CreativeWork", "name": "Licence", "description": licence},
            {"@id": "#opinionsim", "@type": "SoftwareApplication", "name": "opinionsim", "version": version},
            *listed,
        ],
    }
