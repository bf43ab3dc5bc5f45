"""Lists of named things."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from opinionsim.cli._console import aligned, say, say_json
from opinionsim.cli._options import AsJson, own_modules
from opinionsim.errors import SpecError, meant
from opinionsim.registry import places

if TYPE_CHECKING:
    from opinionsim.prompts import Texts

    Kind = str
#: Values of a variable of a survey beyond which a table does not list them.
_MANY_VALUES = 12


#: Kinds of part by what lists of them are called.
_PARTS: Mapping[str, str] = {name: each.inside for name, each in places("list").items()}


def list_names(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="One of: " + ", ".join((*_LISTS, *_PARTS)))],
    name: Annotated[str | None, typer.Argument()] = None,
    survey: str | None = None,
    mapping: str | None = None,
    as_json: AsJson = False,
) -> None:
    """List topics, personas, models, metrics and all other named parts.

    Parameters
    ----------
    name : NAME
        For topics and personas: one of them, or the path of a file, to show its content. For templates: NAME or
        SECTION.NAME to show the whole text. For all other parts: its name, or the import path of your own,
        package.module:NAME, which is imported.
    survey : FILE
        For personas: a survey (.csv, .parquet, .dta, .sav), to list its variables, values and weighted shares.
    mapping : NAME
        Mapping of the survey: a name or the path to a .yaml file. Default: all columns of the file.
    """
    if name is not None and (survey or kind not in (*_SHOWN, *_PARTS)):
        shown = ", ".join((*_SHOWN, *_PARTS))
        raise typer.BadParameter(f"list {kind} takes no name; kinds that take one: {shown}", param_hint="NAME")
    if kind != "personas" and (survey or mapping):
        raise SpecError(f"--survey and --mapping go with personas, not with {kind}")
    if mapping and not survey:
        raise SpecError("--mapping needs --survey FILE, the data that it maps")
    if survey is not None:
        rows = _variables(survey, mapping, every_value=as_json)
    else:
        rows = _parts(_PARTS[kind], name) if kind in _PARTS else _LISTS[kind]() if name is None else _SHOWN[kind](name)
    if as_json:
        say_json(rows)
    elif name is not None and kind == "templates":
        say("\n\n".join(f"# {row['section']}.{row['name']}, pack {row['pack']}\n\n{row['text']}" for row in rows))
    elif name is not None and kind == "topics":
        say("\n\n".join(aligned(list(zip(row, map(_spell, row.values()), strict=True))) for row in rows))
    else:
        rows = [row | row.get("attributes", {}) for row in rows]
        columns = list(dict.fromkeys(key for row in rows for key in row if key != "attributes"))
        say(aligned([columns, *([_spell(row.get(column, "")) for column in columns] for row in rows)], gap=2))


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "\n".join(f"{key}: {each}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def _files(folder: str) -> list[Path]:
    from opinionsim.foundation.data import data_folder

    return sorted(data_folder(folder).glob("*.yaml"))


def _called(name: str, what: str, known: Mapping[str, Any]) -> Any:
    """What is known under a name."""
    if name not in known:
        valid = ", ".join(known)
        raise SpecError(f"no {what} is called {name!r}{meant(name, known)}; valid: {valid}, or the path of a file")
    return known[name]


def _topics() -> list[dict[str, Any]]:
    """Topics of the package, without their claims."""
    from opinionsim.topics import load_topics

    topics = [topic for file in _files("topics") for topic in load_topics(file).values()]
    plain = ("sensitive", "category", "title")
    return [
        {"name": topic.name, "framings": list(topic.claims), **{key: getattr(topic, key) for key in plain}}
        for topic in topics
    ]


def _topics_shown(name: str) -> list[dict[str, Any]]:
    """A topic of the package with all that its file says, or all topics of a file."""
    from opinionsim.topics import load_topics

    files = [Path(name)] if Path(name).suffix else _files("topics")
    known = {topic: found for file in files for topic, found in load_topics(file).items()}
    shown = known.values() if Path(name).suffix else [_called(name, "topic", known)]
    return [{key: value for key, value in each.model_dump().items() if value or key != "question"} for each in shown]


def _personas() -> list[dict[str, Any]]:
    from opinionsim.personas import load_personas

    found = {file.stem: load_personas(file) for file in _files("personas")}
    return [{"name": name, "personas": len(each.personas), "source": each.source} for name, each in found.items()]


def _personas_shown(name: str) -> list[dict[str, Any]]:
    """The persons of a set of the package, or of a file."""
    from opinionsim.personas import load_personas

    known = {file.stem: file for file in _files("personas")}
    found = load_personas(name if Path(name).suffix else _called(name, "persona set", known))
    rows = [asdict(each) for each in found.personas]
    return [{key: value for key, value in row.items() if value or key in ("name", "opinion")} for row in rows]


def _variables(file: str, mapping: str | None, *, every_value: bool) -> list[dict[str, Any]]:
    """Variables of a survey, each with its values and their weighted shares; in tables long lists become a range."""
    from opinionsim.surveys import load_survey, unmapped_survey

    survey = unmapped_survey(file) if mapping is None else load_survey(file, mapping)
    rows = []
    for column, (name, shares) in zip(survey.mapping.columns, survey.variables().items(), strict=True):
        values: Any = [{"value": value, "share": share} for value, share in shares.items()]
        if not every_value:
            values = _shares(shares)
        said = "yes" if column.clause else f"asked {column.asked}" if column.asked else "no"
        rows.append({"variable": name, "label": column.heading, "in persona": said, "values": values})
    return rows


def _shares(shares: Mapping[str | float | None, float]) -> str:
    """Values with their shares; of many, first and last and how many there are."""
    given = [value for value in shares if value is not None]
    missing = [f"missing {shares[None]:.1%}"] if None in shares else []
    spelled = [f"{value:g}" if isinstance(value, float) else value for value in given]
    if len(given) > _MANY_VALUES:
        return ", ".join([f"{spelled[0]} … {spelled[-1]} ({len(given)} values)", *missing])
    listed = [f"{each} {shares[value]:.1%}" for each, value in zip(spelled, given, strict=True)]
    return ", ".join([*listed, *missing])


def _models() -> list[dict[str, Any]]:
    """The presets of the scripted model, and the forms of all other names."""
    from opinionsim.llm import PRESETS

    presets = [
        {
            "name": "scripted",
            "what": f"preset {preset}: a stand-in that needs no key or network; its results are not evidence",
            "options": [f"{key}={value}" for key, value in asdict(parameters).items()],
        }
        for preset, parameters in PRESETS.items()
    ]
    stated = tomllib.loads(Path(__file__).with_name("models.toml").read_text(encoding="utf-8"))
    *others, last = ({"name": name, **told} for name, told in stated.items())
    return [*presets, *others, *(each.value["listed"] for each in places("local").values()), last]


def _parts(kind: str, name: str | None) -> list[dict[str, Any]]:
    """Built-in parts of a kind or the one that is named, each with its fields or options and a summary."""
    from opinionsim.foundation.bibliography import cited
    from opinionsim.foundation.provenance import docstring
    from opinionsim.registry import built_in, find, summary

    own_modules()
    parts = built_in(kind) if name is None else {name: find(kind, name)}
    # Declarations tell of themselves, and stay in the order of their table.
    told = {each: getattr(part.target, "listed", None) for each, part in parts.items()}
    rows = [
        {"name": each, **(told[each] or {"fields": parts[each].fields(), "what": summary(parts[each])})}
        for each in sorted(parts, key=lambda each: "" if told[each] else each)
    ]
    target = None if name is None else parts[name].target
    works = [] if target is None else cited(docstring(getattr(target, "parameters", target)))
    return [row | {"cites": [each.text for each in works]} for row in rows] if works else rows


def _templates() -> list[dict[str, Any]]:
    """Templates and named texts of the built-in packs, each with the variables or placeholders it may use or has."""
    return [{key: row[key] for key in ("name", "section", "pack", "variables")} for row in _all_templates()]


def _template_texts(name: str) -> list[dict[str, Any]]:
    """Templates and named texts of a name, in every section unless it is ``SECTION.NAME``, with their texts."""
    rows = [((row["name"], f"{row['section']}.{row['name']}"), row) for row in _all_templates()]
    found = [row for names, row in rows if name in names]
    if not found:
        close = meant(name, [each for names, _ in rows for each in names])
        raise SpecError(f"no template is called {name!r}{close}; `opinionsim list templates` names them all")
    return found


def _all_templates() -> list[dict[str, Any]]:
    """Templates and named texts of the built-in packs, with their texts."""
    from opinionsim.prompts import VARIABLES, Texts, pack_files, placeholders
    from opinionsim.registry import names

    rows: list[tuple[str, str, str, str, Sequence[str]]] = []
    for pack in names("pack"):
        for file, text in pack_files(pack).items():
            name = Path(file).stem
            if file.endswith(".j2") and not name.startswith("_"):
                variables = VARIABLES[name if name in VARIABLES else "task"]
                rows.append((pack, "prompts", name, text, variables))
            elif file == "texts.yaml":
                texts = Texts.parse(text, f"prompt pack {pack}/{file}")
                rows += [(pack, *row, placeholders(row[-1])) for row in _named(texts)]
    return [
        {"name": name, "section": section, "pack": pack, "variables": list(variables), "text": text}
        for pack, section, name, text, variables in rows
    ]


def _named(texts: Texts) -> Iterator[tuple[str, str, str]]:
    """Section, name and text of each named text; templates have their ideals in place."""
    for section in ("personas", "instructions", "moderators", "moderation"):
        for name in texts.names(section):
            yield section, name, texts.template(section, name)
    for wave, ideals in texts.file.ideals.items():
        yield "ideals", wave, "\n".join(f"{each.name}: {each.line} [{each.source}]" for each in ideals)
    for name, interview in texts.file.interviews.items():
        questions = "\n".join(f"{i}. {each}" for i, each in enumerate(interview.questions, 1))
        yield "interviews", name, f"{interview.voice}\n\n{interview.words} words at most for each answer:\n{questions}"
    yield "requests", "automatic", texts.file.automatic.request
    yield "requests", "values", texts.file.values


def _experiments() -> list[dict[str, Any]]:
    """Experiments of the package, each with its description or else its first comment."""
    from opinionsim.foundation.data import data_folder
    from opinionsim.foundation.documents import read_document

    folder = data_folder("experiments")
    rows = []
    for file in sorted(folder.rglob("*.yaml")):
        described = str(read_document(file).value.get("description", "")).strip() or _first_comment(file)
        rows.append({"name": file.relative_to(folder).with_suffix("").as_posix(), "what": " ".join(described.split())})
    return rows


def _first_comment(file: Path) -> str:
    """The comment at the beginning of a file."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


#: What is shown by name.
_SHOWN: Mapping[str, Callable[[str], list[dict[str, Any]]]] = {
    "topics": _topics_shown,
    "personas": _personas_shown,
    "templates": _template_texts,
}
_LISTS: Mapping[str, Callable[[], list[dict[str, Any]]]] = {
    "topics": _topics,
    "personas": _personas,
    "models": _models,
    "templates": _templates,
    "experiments": _experiments,
}
#: What can be listed.
if not TYPE_CHECKING:
    Kind = Literal[*_LISTS, *_PARTS]
