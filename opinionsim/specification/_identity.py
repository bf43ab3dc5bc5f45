"""The identity of runs."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np

from opinionsim.foundation.streams import canonical_json, digest
from opinionsim.opinions import OpinionScale
from opinionsim.schedules import Setting
from opinionsim.specification._event_fields import event_identity
from opinionsim.specification._fields import USUAL_SIZE, ExperimentSpec
from opinionsim.specification._member_fields import MemberSpec, RoleSpec
from opinionsim.specification._own_parts import own_parts_of
from opinionsim.specification._resources import Resources
from opinionsim.specification._survey_fields import draws_personas, uses_survey
from opinionsim.topics import Claim

#: Raised when the meaning of a field or default changes, so that old runs are not taken for new ones.
_VERSION = 1

#: Fields of a specification that are part of a run's identity, wholly or in part.
RUN_FIELDS = (
    "population",
    "cast",
    "roles",
    "task",
    "survey",
    "topic",
    "cognition",
    "interaction",
    "events",
    "fork",
    "model",
    "measurement.probe",
    "measurement.self_report",
    "prompts",
    "scale",
)
#: Those at the top of a specification.
TOP_FIELDS = tuple(dict.fromkeys(path.partition(".")[0] for path in RUN_FIELDS))

#: Values of a population that its identity leaves out.
_USUAL = {"size": USUAL_SIZE, "initial_opinions": "uniform"}


def canonical(value: Any) -> Any:
    """JSON values in canonical form: lists for tuples, text for keys, 1 for 1.0."""
    if isinstance(value, dict):
        return {str(key): canonical(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(child) for child in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _stated(model: Any, *without: str) -> dict[str, Any]:
    """Fields of a model that differ from their defaults."""
    stated: dict[str, Any] = model.model_dump(mode="json", exclude_defaults=True, exclude=set(without))
    return stated


def _population_fields(spec: ExperimentSpec, resources: Resources) -> dict[str, Any]:
    """Identity fields of a population; personas enter by the content that prompts can show, not by file name."""
    fields = {name: value for name, value in _stated(spec.population).items() if value != _USUAL.get(name)}
    if not isinstance(counts := spec.population.distribution, str):
        fields["initial_opinions"] = {str(value): count for value, count in counts.items() if count}
    if draws_personas(spec):
        return fields
    personas = [
        [persona.name, persona.opinion, list(persona.attributes.items()), persona.background]
        for persona in resources.personas(spec.population).personas
    ]
    return {**fields, "personas": digest(canonical_json(personas))}


def _member(each: MemberSpec | RoleSpec) -> dict[str, Any]:
    """Identity fields of a member of the cast."""
    fields = _stated(each, "model") | ({} if each.model is None else {"model": each.model.identity()})
    return fields if each.seat is None else fields | {"seat": _stated(each.seat, "timeout_s")}


def _cast_fields(spec: ExperimentSpec, resources: Resources) -> dict[str, Any]:
    """Identity fields of the population or the cast, the roles and the task."""
    fields: dict[str, Any] = {"task": spec.task} if spec.task else {}
    if spec.roles:
        fields["roles"] = {role: _member(each) for role, each in spec.roles.items()}
    if spec.cast:
        return {**fields, "cast": [_member(each) for each in spec.cast]}
    return {**fields, "population": _population_fields(spec, resources)}


def _survey_fields(spec: ExperimentSpec, resources: Resources) -> dict[str, Any]:
    """Identity fields of a survey from which respondents are drawn; it enters by what can reach a prompt or a draw."""
    if not uses_survey(spec) or spec.survey is None:
        return {}
    return {**_stated(spec.survey, "file", "mapping"), "content": resources.survey(spec).identity}


def setting_of(spec: ExperimentSpec, resources: Resources, claim: Claim | None = None, **drawn: Any) -> Setting:
    """The settings that an interaction gets from a specification.

    Parameters
    ----------
    spec : ExperimentSpec
        Specification of one run.
    resources : Resources
        Its messages.
    claim : Claim, optional
        The claim that its opinions are about; default None.
    **drawn
        Attributes of :class:`opinionsim.schedules.Setting` that are drawn for each run.
    """
    return Setting(
        spec.size,
        **{"draws": lambda *_: np.random.default_rng(), **drawn},
        messages=resources.messages,
        given=spec.given,
        position="" if claim is None else claim.statement,
        question=spec.task if claim is None else claim.question or spec.task,
        questioned=spec.measurement.probe.after + spec.measurement.self_report.after > 0,
        questions=[(act.name, asked.before, asked.after) for asked, act in spec.asked],
        seats=frozenset(agent for agent in spec.seats if isinstance(agent, int)),
    )


def _interaction_fields(spec: ExperimentSpec, resources: Resources) -> dict[str, Any]:
    """Identity fields of an interaction; network and messages enter by content."""
    names = resources.names(spec) if spec.cast else None
    fields = spec.interaction.identity(setting_of(spec, resources, names=names or ()))
    network = spec.interaction.contacts
    if network is not None and network.kind != "complete":
        fields["network"] = network.identity(spec.size, resources.network, resources.names(spec))
    return fields


def run_fields(spec: ExperimentSpec, resources: Resources) -> dict[str, Any]:
    """The resolved fields that can affect a prompt, a draw or a model, without defaults.

    Parameters
    ----------
    spec : ExperimentSpec
        Specification of one run.
    resources : Resources
        Its topics, personas, messages and networks.

    Returns
    -------
    dict
        JSON values. Files enter by content, so renaming a file changes nothing. A prompt pack enters by the name of
        its folder: an edited template is then compared with the prompts on record, and reported.
    """
    claim = resources.claim(spec)
    topic: dict[str, Any] = {}
    if claim is not None:
        topic = {"name": claim.topic, "framing": claim.framing, "claim": claim.text, "masked": spec.topic.masked}
        # Agents are told what is right and wrong where a truth is declared.
        topic |= {"open": True} if claim.accepted is None else {}
        topic |= {"question": claim.question} if claim.question else {}
    usual_world = "open" if spec.cast else "closed"
    fields: dict[str, Any] = {
        **_cast_fields(spec, resources),
        "survey": _survey_fields(spec, resources),
        "topic": topic,
        "interaction": _interaction_fields(spec, resources),
        "cognition": _stated(spec.cognition, "world") | ({} if spec.world == usual_world else {"world": spec.world}),
        "model": spec.model.identity(),
        "measurement": {"probe": _stated(spec.measurement.probe)},
    }
    if spec.events:
        fields["events"] = event_identity(spec.events, resources.messages)
    if spec.fork is not None:
        fields["fork"] = spec.fork.model_dump()
    if spec.pack != "default":
        fields["prompts"] = PurePath(spec.pack).name or spec.pack
    if asked := _stated(spec.measurement.self_report):
        fields["measurement"]["self_report"] = asked
    scale = spec.scale.scale()
    if scale != OpinionScale():
        fields["scale"] = {"points": scale.points, "labels": scale.labels}
    if spec.interaction.needs:
        fields["measurement"]["needs"] = {
            each.variable: each.instrument_id
            # The first of several instruments of a variable counts: reversed, it is written last.
            for each in reversed(spec.instruments)
            if each.variable in spec.interaction.needs
        }
    if versions := {name: part.version for name, part in own_parts_of(spec).items() if part.version}:
        fields["versions"] = versions
    if spec.independent_over:
        fields["independent"] = {path: value_at(fields, spec, path) for path in spec.independent_over}
    if spec.interaction.recorded:
        # People stay the same people whoever is to play them.
        fields = {"size": spec.size, **{name: fields.get(name, {}) for name in ("topic", "interaction", "scale")}}
    found = canonical(fields)
    return {key: value for key, value in found.items() if value not in ({}, {"probe": {}})}


def value_at(fields: dict[str, Any], spec: ExperimentSpec, path: str) -> Any:
    """The resolved value at a dotted path, or the specified value if the resolved fields lack the path."""
    for tree in (fields, spec.model_dump(mode="json")):
        node: Any = tree
        for key in path.split("."):
            node = node.get(key) if isinstance(node, dict) else None
        if node is not None:
            return canonical(node)
    return None


def run_id(spec: ExperimentSpec, fields: dict[str, Any], replicate: int, others: dict[str, int]) -> str:
    """Identity of a run: 24 hexadecimal characters.

    Parameters
    ----------
    spec : ExperimentSpec
        Specification of one run; only its seed is read.
    fields : dict
        Result of :func:`run_fields`.
    replicate : int
        From 0.
    others : dict of str to int
        Further numbers that distinguish the runs of a cell, by name.
    """
    return digest(canonical_json([_VERSION, spec.seed, replicate, fields, *([others] if others else [])]))


def block(spec: ExperimentSpec, fields: dict[str, Any], replicate: int) -> str:
    """Name of the set of runs that share random draws.

    Returns
    -------
    str
        Seed, replicate and the values of `independent_over`, as in ``seed=1/replicate=0/topic.name=palms``.
    """
    parts = [f"seed={spec.seed}", f"replicate={replicate}"]
    for path, value in fields.get("independent", {}).items():
        plain = isinstance(value, (str, int, float, type(None)))
        parts.append(f"{path}={value if plain else digest(canonical_json(value))}")
    return "/".join(parts)
