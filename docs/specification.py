"""Writes docs/specification.md from the schema of specifications: run ``python docs/specification.py`` to renew it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from pydantic import BaseModel

from opinionsim.foundation.documents import DocumentModel
from opinionsim.specification import json_schema

PAGE = Path(__file__).with_name("specification.md")

_INTRO = """\
# Every field of a specification

A specification is a YAML file that declares an experiment. This page has a section for each top-level key, in the usual
order of such files. Every specification needs `name` and `interaction`. If a chat model plays the agents, it also needs
`topic` or `task`. Here is the smallest one:

```yaml
name: first
topic: {name: flat-earth}
interaction: {kind: dyadic, steps: 20}
```

This page writes nested fields with dots, as you do on the command line. For example, `--set population.size=20`
changes one such field, and `sweep` can vary it. If a default is `null`, the description says what the engine does then.
Paths of files are relative to the folder of the specification. To check a specification without making a call, run
`opinionsim plan FILE`, which reports errors with file, line and field. `opinionsim schema` prints the fields as JSON
Schema for editors that check your file as you type.

<!-- Made by docs/specification.py from the schema: change the fields or that file, not this page. -->
"""

#: What a reader of a section needs beside its fields, and an example, which a test loads.
_NOTES: Mapping[str, str] = {
    "population": (
        "By default, every persona of a file takes part once, with its opinion in the file. `size` and "
        "`initial_opinions` change this. `opinionsim list personas FILE` shows who is in a file, and `run` reports who "
        "takes part. You can also save what is under `personas` in the example as a file and refer to it with "
        "`personas: FILE`: see [personas](../personas/README.md)."
    ),
    "survey": "[surveys.md](surveys.md) explains how respondents are drawn and weighted.",
    "cast": "Use this to describe each agent separately, for example for a structure of deliberation: see "
    "[structures.md](structures.md).",
    "roles": "[structures.md](structures.md) explains what moderators do after a structure has ended.",
    "topic": (
        "`opinionsim list topics` lists the topics of the package. Add the name of a topic or the path of a file to "
        "see its contents. Prompts call a claim right or wrong only if its topic says which side is `accepted`. "
        "[topics](../topics/README.md) explains how to write a file of topics."
    ),
    "interaction": "`opinionsim list interactions` lists all kinds. See [structures.md](structures.md) for structures "
    "of deliberation, and [adaptive.md](adaptive.md) for kinds that adapt to opinions.",
    "fork": "[controls.md](controls.md#forks) explains what a fork can change and what it shares.",
    "ethics": "See [room.md](room.md#people-as-subjects) for studies with people at seats.",
    "events": "[events.md](events.md) explains what each kind of event does to a run.",
    "model": "See [models.md](models.md) for providers and keys, and [missing.md](missing.md) for refused and "
    "truncated replies.",
    "measurement": "[classifiers.md](classifiers.md) describes the classifiers and what they can measure.",
    "execution": "See [budgets.md](budgets.md) for limits, retries and prices, and [half_price.md](half_price.md) for "
    "lanes.",
    "sweep": "Every combination of values is a cell, and every cell has `replicates` runs. A value that is a mapping "
    "replaces the whole field and can include a `label`.",
    "analysis": "[statistics.md](statistics.md) explains contrasts of conditions and the findings about them.",
    "robustness": "[robustness.md](robustness.md) explains what variants can change and how they are compared.",
}
_EXAMPLES: Mapping[str, str] = {
    "name": "name: town-square\ndescription: Does it matter who can hear whom?\nseed: 2024\nreplicates: 10",
    "population": "population:\n  shown: demographics\n  personas:\n    name: townspeople\n    personas:\n"
    "      - {name: Ada Berg, opinion: -1, attributes: {age: 34, occupation: nurse}}\n"
    "      - {name: Bruno Costa, opinion: 1, attributes: {age: 51, occupation: plumber}}",
    "survey": "survey: {file: synthetic, mapping: synthetic}\npopulation: {personas: survey, size: 20}",
    "cast": "cast:\n  - {name: Ada, persona: You are a nurse and live in the suburbs.}\n"
    "  - {name: Bruno, persona: You run a shop in the centre.}\n"
    "task: Should the town charge a fee for driving into its centre? Answer in 50 words.\n"
    "interaction: {kind: debate, cycles: 2}",
    "roles": "roles:\n  moderator: {persona: default, instructions: default}\ninteraction: {kind: ensemble}\n"
    "task: What should the square be used for? Answer in 50 words.",
    "task": "task: Write as if to your neighbours.",
    "fork": "interaction: {kind: dyadic, steps: 20}\nsweep:\n  - interaction: [{kind: dyadic, steps: 20}]\n"
    "  - fork: [{cell: interaction=dyadic, step: 11}]\n    cognition.confirmation_bias: [strong]",
    "topic": "topic:\n  framing: for\n  definition:\n    name: congestion-charge\n    title: Congestion charge\n"
    "    claims:\n      for: the town should charge a fee for driving into its centre\n"
    "      against: the town should not charge a fee for driving into its centre",
    "cognition": "cognition: {memory: reflective, confirmation_bias: weak, post_words: 40}",
    "interaction": "interaction:\n  kind: dyadic\n  network: {kind: watts-strogatz, k: 4, p: 0.1}\n  exposures: 5",
    "ethics": "ethics: {consent: consent.yaml, protocol: 2026-17, age: 18}",
    "events": "events:\n  - {kind: message, step: 5, text: The council has published its figures.}\n"
    "  - {kind: leave, step: 8, agents: {share: 0.2}}",
    "model": "model: {name: scripted, temperature: 0.7, max_tokens: 300, replies: {truncated: {then: measure}}}",
    "measurement": "measurement:\n  classifier: lexicon\n  texts: [report]\n  probe: {before: 1, after: 1}\n"
    "  metrics: [polarization]",
    "prompts": "prompts: default",
    "scale": "scale: {points: [-1, 0, 1], labels: [against, undecided, in favour]}\n"
    "population: {initial_opinions: uniform}",
    "execution": "execution: {max_concurrency: 16, budget: {calls: 2000}}",
    "sweep": "sweep:\n  cognition.confirmation_bias: [none, strong]\n  interaction.network:\n    - complete\n"
    "    - {label: small world, kind: watts-strogatz, k: 4, p: 0.1}",
    "independent_over": "sweep: {topic.name: [flat-earth, t-rex]}\nindependent_over: [topic.name]",
    "robustness": "sweep: {cognition.confirmation_bias: [none, strong]}\nanalysis:\n  contrasts:\n    bias divides:\n"
    "      measure: diversity\n      of: strong - none\nrobustness:\n"
    "  - {label: second wording, change: {prompts.variant: second}}\n"
    "  - {label: warmer, change: {model.temperature: 1.0}}",
    "analysis": "sweep: {cognition.confirmation_bias: [none, strong]}\nanalysis:\n  primary: bias divides\n"
    "  smallest: 0.2\n  contrasts:\n    bias divides:\n      measure: diversity\n"
    "      of: strong - none",
}
#: Keys told in one section with the one before them, and what becomes of references that have a section.
_JOINED = {"name": ("name", "description", "seed", "replicates", "redraws")}
_LINKS = {
    "NetworkKind": "a [network](#networks)",
    "ModelSpec": "a chat model, as under [`model`](#model)",
    "ScaleSpec": "a scale, as under [`scale`](#scale)",
    "NamedPart": "a name, or a mapping with `name` and `options`",
    "ClassifierSpec": "a name, or a mapping with `name` and `options`",
    "Compared": "text, a mapping, or a list of two of these",
}
#: Largest bounds that are worth telling; others only guard the machine.
_LARGE = 1_000_000

_SCHEMA = json_schema()
_DEFINED: Mapping[str, Any] = _SCHEMA["$defs"]


def _classes(parent: type[BaseModel] = DocumentModel) -> Iterator[type[BaseModel]]:
    for each in parent.__subclasses__():
        yield each
        yield from _classes(each)


_CLASSES = {each.__name__: each for each in _classes()}


def _sentence(text: str) -> str:
    """A description in one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _first(text: str) -> str:
    """The first paragraph of a description, in one line."""
    return _sentence(text.partition("\n\n")[0])


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _range(schema: Mapping[str, Any], what: str) -> str:
    """A number with its bounds, in words."""
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    least = None if least is not None and abs(least) > _LARGE else least
    most = None if most is not None and most > _LARGE else most
    if least is not None and most is not None:
        return f"{what} from {_number(least)} to {_number(most)}"
    bounds = [
        *([f"≥ {_number(least)}"] if least is not None else []),
        *([f"> {_number(above)}"] if above is not None else []),
        *([f"< {_number(below)}"] if below is not None else []),
        *([f"≤ {_number(most)}"] if most is not None else []),
    ]
    return f"{what} {' and '.join(bounds)}".strip()


def _values(schema: Mapping[str, Any]) -> str:
    """What a field takes, in words."""
    if name := _reference(schema):
        return _LINKS.get(name) or _values(_DEFINED[name])
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_values(each) for each in options if each.get("type") != "null"))
    kind = schema.get("type")
    if "prefixItems" in schema:
        named = any("string" in json.dumps(each) for each in schema["prefixItems"])
        return f"pair of {'numbers or names' if named else 'whole numbers'}"
    if kind == "array":
        return f"list of {_plural(schema.get('items', {}))}"
    if kind == "object" and "properties" in schema:
        return f"mapping with {', '.join(f'`{field}`' for field in schema['properties'])}"
    words = {"string": "text", "boolean": "`true` or `false`", "object": "mapping"}
    numbers = {"integer": "whole number", "number": "number"}
    return _range(schema, numbers[kind]) if kind in numbers else words.get(str(kind), "any value")


def _plural(schema: Mapping[str, Any]) -> str:
    spelled = _values(schema).replace("a name, or a mapping", "names, or of mappings")
    return re.sub(r"^(whole number|number|text|mapping|list|pair|any value)", r"\1s", spelled)


def _reference(schema: Mapping[str, Any]) -> str:
    """The name of the definition that a schema refers to, null left out of account; empty where it refers to none."""
    options = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    found = str(options[0].get("$ref", "")) if len(options) == 1 else ""
    return found.rpartition("/")[2]


def _default(owner: Mapping[str, Any], field: str) -> str:
    """A default as YAML; empty where a mapping has defaults of its own."""
    schema = owner["properties"][field]
    if field in owner.get("required", []):
        return "required"
    value = schema.get("default", ...)
    if value is ...:
        given = _CLASSES[owner["title"]].model_fields[field].get_default(call_default_factory=True)
        value = getattr(given, "kind", getattr(given, "name", given))
    if isinstance(value, BaseModel):
        return ""
    spelled = json.dumps(value).replace('"', "")
    return "none" if value in ("", (), []) else f"`{spelled}`"


def _rows(owner: Mapping[str, Any], prefix: str = "", without: frozenset[str] = frozenset()) -> Iterator[str]:
    """Rows of a table, one a field; fields of mappings that have no section of their own are told with dots."""
    for field, schema in owner["properties"].items():
        name = _reference(schema)
        inner = _DEFINED.get(name, {})
        if field == "kind" or field in without:
            continue
        if "properties" in inner and name not in _LINKS:
            told = _first(schema.get("description", inner.get("description", "")))
            open_end = " or `null`" if "anyOf" in schema else ""
            yield f"| `{prefix}{field}` | mapping{open_end} | {_default(owner, field)} | {told} |"
            yield from _rows(inner, f"{prefix}{field}.")
        else:
            values = _values(schema)
            nullable = any(each.get("type") == "null" for each in schema.get("anyOf", []))
            values += " or `null`" if nullable else ""
            yield f"| `{prefix}{field}` | {values} | {_default(owner, field)} | {_sentence(schema['description'])} |"
            entries = schema.get("additionalProperties")
            named = _DEFINED.get(_reference(entries), {}) if isinstance(entries, dict) else {}
            if "properties" in named and named["title"] not in _LINKS:
                yield from _rows(named, f"{prefix}{field}.NAME.")


def _table(rows: list[str]) -> list[str]:
    return ["| Field | Values | Default | Meaning |", "|---|---|---|---|", *rows, ""] if rows else []


def _forms(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The mappings that a schema allows, each with its fields; entries of a list or a mapping count as its forms."""
    if "$ref" in schema:
        return _forms(_DEFINED[schema["$ref"].rpartition("/")[2]])
    if "properties" in schema:
        # Without a title it stands for parts of one's own, whose fields are not known here.
        return [schema] if "title" in schema else []
    inner = [*([schema["items"]] if "items" in schema else []), *schema.get("patternProperties", {}).values()]
    options = schema.get("anyOf") or schema.get("oneOf") or inner
    return [form for option in options if isinstance(option, dict) for form in _forms(option)]


def _kind(form: Mapping[str, Any]) -> str:
    return str(form["properties"].get("kind", {}).get("const", ""))


def _by_form(forms: list[Mapping[str, Any]]) -> Iterator[str]:
    """Forms one after the other; fields that several have alike are told once, before them."""
    told = Counter((field, json.dumps(each)) for form in forms for field, each in form["properties"].items())
    shared: dict[str, Mapping[str, Any]] = {}
    for form in forms:
        for field, each in form["properties"].items():
            if told[field, json.dumps(each)] > 1 and field != "kind":
                shared.setdefault(field, {**form, "properties": {field: each}})
    if shared:
        yield "Several of the forms below share these fields:\n"
        yield from _table([row for owner in shared.values() for row in _rows(owner)])
    for form in forms:
        own = form["properties"]
        alike = [field for field in own if field in shared and shared[field]["properties"][field] == own[field]]
        title = f"`kind: {_kind(form)}`" if _kind(form) else _first(form["description"]).rstrip(".")
        yield f"### {title}\n"
        if _kind(form):
            yield f"{_first(form['description'])}\n"
        if alike:
            more = len(own.keys() - {"kind", *alike})
            yield f"Shared fields: {', '.join(f'`{field}`' for field in alike)}.{' Further fields:' if more else ''}\n"
        yield from _table(list(_rows(form, without=frozenset(alike))))


def _networks() -> Iterator[str]:
    """The kinds of network, as a list."""
    yield "### Networks\n"
    yield (
        "Write a network as a mapping with `kind` and its fields, or as the name of the kind if it needs no fields. To "
        "list pairs of agents, `{edges: [[0, 1], [1, 2]]}` is enough. See also [networks.md](networks.md).\n"
    )
    for form in _forms(_DEFINED["NetworkKind"]):
        fields = []
        for field, schema in form["properties"].items():
            if field != "kind":
                default = _default(form, field)
                told = default if default == "required" else f"default {default}"
                fields.append(f"  - `{field}`, {_values(schema)}, {told}: {_sentence(schema['description'])}")
        yield "\n".join([f"- `{_kind(form)}`: {_first(form['description'])}", *fields])
    yield ""


def _section(key: str) -> Iterator[str]:
    keys = _JOINED.get(key, (key,))
    yield f"## {', '.join(f'`{each}`' for each in keys)}\n"
    schema = _SCHEMA["properties"][key]
    forms = [] if len(keys) > 1 else _forms(schema)
    if forms:
        told = schema.get("description") or forms[0]["description"]
        yield f"{_sentence(told)}{' Each entry has these fields.' if key in ('cast', 'roles') else ''}\n"
    if key in _NOTES:
        yield f"{fill(_NOTES[key], 120, break_on_hyphens=False, break_long_words=False)}\n"
    if not forms:
        fields = {each: _SCHEMA["properties"][each] for each in keys}
        yield from _table(list(_rows({**_SCHEMA, "title": "ExperimentSpec", "properties": fields})))
    elif len(forms) == 1:
        yield from _table(list(_rows(forms[0])))
    else:
        yield from _by_form(forms)
    if key == "measurement":
        yield "### Entries of `measurement.instruments`\n"
        yield from _table(list(_rows(_DEFINED["InstrumentSpec"])))
    if key == "interaction":
        if drafter := _DEFINED.get("DrafterSpec"):  # where consensus finding is there
            yield "### Entries of `interaction.drafters`\n"
            yield from _table(list(_rows(drafter)))
        yield from _networks()
    if key in ("interaction", "events", "model", "topic"):
        yield "### Example\n"
    yield f"```yaml\n{_EXAMPLES[key]}\n```\n"


def page() -> str:
    """The page as the schema has it.

    Returns
    -------
    str
        Markdown.
    """
    joined = {each for keys in _JOINED.values() for each in keys[1:]}
    sections = [line for key in _SCHEMA["properties"] if key not in joined for line in _section(key)]
    return "\n".join([_INTRO, *sections]).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
