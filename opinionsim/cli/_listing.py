"""What there is to choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from opinionsim.cli._console import aligned, say, say_json
from opinionsim.cli._options import AsJson

__all__ = ["list_names"]


class Kind(StrEnum):
    """Kinds of things that are listed."""

    TOPICS = "topics"
    PERSONAS = "personas"
    MODELS = "models"
    CLASSIFIERS = "classifiers"
    TEMPLATES = "templates"
    EXPERIMENTS = "experiments"
    SCHEDULES = "schedules"
    ABM = "abm"
    NETWORKS = "networks"
    MEASURES = "measures"


def list_names(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="One of: " + ", ".join(Kind), show_default=False)],
    as_json: AsJson = False,
) -> None:
    """List topics, personas, models, classic models (abm), measures and whatever else has a name."""
    rows = _LISTS[kind]()
    if as_json:
        say_json(rows)
        return
    columns = list(rows[0])
    say(aligned([columns, *([_spell(row[column]) for column in columns] for row in rows)]))


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _topics() -> list[dict[str, Any]]:
    """Topics of the package; their claims are in the topics file."""
    from opinionsim.data import data_folder
    from opinionsim.topics import load_topics

    topics = [topic for file in sorted(data_folder("topics").glob("*.yaml")) for topic in load_topics(file).values()]
    return [
        {
            "name": topic.name,
            "framings": [str(framing) for framing in topic.claims],
            "sensitive": topic.sensitive,
            "category": topic.category,
            "title": topic.title,
        }
        for topic in topics
    ]


def _personas() -> list[dict[str, Any]]:
    from opinionsim.data import data_folder
    from opinionsim.personas import load_personas

    files = sorted(data_folder("personas").glob("*.yaml"))
    return [
        {"name": file.stem, "personas": len(found.personas), "source": found.source}
        for file in files
        for found in [load_personas(file)]
    ]


def _models() -> list[dict[str, Any]]:
    """The model of the package with its presets, and the forms of all others."""
    from dataclasses import asdict

    from opinionsim.llm import PRESETS

    presets = [
        {
            "name": "scripted",
            "what": f"preset {preset}: a stand-in without key or network, not evidence",
            "options": [f"{key}={value}" for key, value in asdict(parameters).items()],
        }
        for preset, parameters in PRESETS.items()
    ]
    others = {
        "openai:MODEL": ("OpenAI, key in OPENAI_API_KEY", ["reasoning_effort", "use_responses_api", "top_p"]),
        "openai:MODEL + base_url": (
            "any server of OpenAI's dialect: vLLM, Ollama, LM Studio, transformers serve",
            ["base_url", "api_key_env", "extra_body"],
        ),
        "anthropic:MODEL": ("Anthropic, package langchain-anthropic, key in ANTHROPIC_API_KEY", ["thinking", "top_p"]),
        "ollama:MODEL": ("a local Ollama, package langchain-ollama", ["base_url", "num_ctx", "reasoning"]),
        "hf:NAME_OR_PATH": (
            "a causal model of Hugging Face in this process, extra local",
            ["see docs/local_models.md"],
        ),
        "PROVIDER:MODEL": ("any LangChain chat model", ["those of the provider's chat model"]),
    }
    return [*presets, *({"name": name, "what": what, "options": known} for name, (what, known) in others.items())]


def _classifiers() -> list[dict[str, Any]]:
    from opinionsim.classifiers import classifier_names, describe_classifier

    return [{"name": name, "what": describe_classifier(name)} for name in classifier_names()]


def _templates() -> list[dict[str, Any]]:
    """Templates of the default pack with the variables each may use."""
    from opinionsim.prompts import VARIABLES, load_pack

    pack = load_pack()
    names = sorted(Path(file).stem for file in pack.contents if file.endswith(".j2"))
    return [
        {"name": name, "variables": list(VARIABLES[name if name in VARIABLES else "task"])}
        for name in names
        if not name.startswith("_")
    ]


def _experiments() -> list[dict[str, Any]]:
    """Declared experiments: what each says of itself, in its description or else its first comment."""
    from opinionsim.data import data_folder
    from opinionsim.documents import read_document

    folder = data_folder("experiments")
    rows = []
    for file in sorted(folder.rglob("*.yaml")):
        described = str(read_document(file).value.get("description", "")).strip() or _first_comment(file)
        rows.append({"name": file.relative_to(folder).with_suffix("").as_posix(), "what": " ".join(described.split())})
    return rows


def _first_comment(file: Path) -> str:
    """The comment a file begins with."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines)


def _schedules() -> list[dict[str, Any]]:
    """Kinds of interaction with their fields."""
    from opinionsim.experiments import ExperimentSpec

    union, *_ = get_args(ExperimentSpec.model_fields["interaction"].annotation) or (None,)
    kinds = get_args(union) or get_args(ExperimentSpec.model_fields["interaction"].annotation)
    return [
        {
            "name": get_args(kind.model_fields["kind"].annotation)[0],
            "fields": [name for name in kind.model_fields if name != "kind"],
            "what": (kind.__doc__ or "").strip(),
        }
        for kind in kinds
    ]


def _abm() -> list[dict[str, Any]]:
    """Classic models with their parameters."""
    from opinionsim.classic import MODELS

    return [{"name": model.name, "parameters": list(model.declared), "what": model.title} for model in MODELS.values()]


def _networks() -> list[dict[str, Any]]:
    """Kinds of network with their parameters."""
    from inspect import signature

    from opinionsim.networks import NETWORKS

    found = {
        name: [each for each in signature(generate).parameters if each not in ("n", "rng")] if generate else []
        for name, generate in NETWORKS.items()
    }
    found |= {"file": ["path"], "edges": ["edges", "weights", "directed"]}
    return [{"name": name, "parameters": fields} for name, fields in found.items()]


def _measures() -> list[dict[str, Any]]:
    """Measures of opinions."""
    from opinionsim.metrics import MEASURES

    return [{"name": name, "what": measure.meaning} for name, measure in MEASURES.items()]


_LISTS: Mapping[Kind, Callable[[], list[dict[str, Any]]]] = {
    Kind.TOPICS: _topics,
    Kind.PERSONAS: _personas,
    Kind.MODELS: _models,
    Kind.CLASSIFIERS: _classifiers,
    Kind.TEMPLATES: _templates,
    Kind.EXPERIMENTS: _experiments,
    Kind.SCHEDULES: _schedules,
    Kind.ABM: _abm,
    Kind.NETWORKS: _networks,
    Kind.MEASURES: _measures,
}
