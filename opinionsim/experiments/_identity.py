"""What makes a run the run it is."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from opinionsim.experiments._model_spec import ByAttributeSpec, ClassicModelSpec, ModelSpec
from opinionsim.experiments._resources import Resources
from opinionsim.experiments._spec import (
    CountsSpec,
    EdgesNetworkSpec,
    ExperimentSpec,
    ExternalSpec,
    FileNetworkSpec,
    NetworkSpec,
)
from opinionsim.networks import build_network
from opinionsim.opinions import OpinionScale
from opinionsim.streams import canonical_json, digest

__all__ = ["RUN_FIELDS", "block", "canonical", "run_fields", "run_id", "value_at"]

#: Grows when the meaning of a field or of a default changes, so that old runs are not taken for new ones.
_VERSION = 1

#: Fields of a specification that are part of a run's identity, wholly or in part.
RUN_FIELDS = (
    "population",
    "topic",
    "cognition",
    "interaction",
    "model",
    "measurement.probe",
    "measurement.self_report",
    "prompts",
    "scale",
)


def canonical(value: Any) -> Any:
    """JSON values in one spelling: lists for tuples, text for keys, 1 for 1.0."""
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


def _model_fields(model: Any) -> Any:
    """One model, models with shares, or models by attribute."""
    if isinstance(model, ClassicModelSpec):
        return _stated(model)
    if isinstance(model, ByAttributeSpec):
        models = {value: _model_fields(each) for value, each in model.models.items()}
        otherwise = {} if model.otherwise is None else {"otherwise": _model_fields(model.otherwise)}
        return {"by": model.by, "models": models, **otherwise}
    if not isinstance(model, ModelSpec):
        return [_model_fields(each) for each in model]
    fields = _stated(model, "options")
    # Which variable holds a key says nothing about what answers.
    options = {name: value for name, value in model.options.items() if name != "api_key_env"}
    return {**fields, "options": options} if options else fields


def _population_fields(spec: ExperimentSpec, resources: Resources) -> dict[str, Any]:
    """Personas enter by what a prompt may show of them, in order; their file's name and notes do not."""
    personas = [
        [persona.name, persona.opinion, list(persona.attributes.items()), persona.background]
        for persona in resources.personas(spec.population).personas
    ]
    fields = _stated(spec.population, "personas")
    initial = spec.population.initial_opinions
    if isinstance(initial, CountsSpec):
        fields["initial_opinions"] = {str(value): count for value, count in initial.counts.items() if count}
    return {**fields, "personas": digest(canonical_json(personas))}


def _network_fields(network: NetworkSpec, size: int, resources: Resources) -> Any:
    """A network that is drawn enters by its parameters, any other by its edges."""
    if isinstance(network, FileNetworkSpec):
        found = resources.network(network, size)
    elif isinstance(network, EdgesNetworkSpec):
        found = build_network(network.mapping(), size, where="interaction.network")
    else:
        return _stated(network)
    pairs, weights = found.edges
    stated = [] if weights is None else [weights.tolist()]
    return {"edges": digest(canonical_json([found.directed, pairs.tolist(), *stated]))}


def _interaction_fields(spec: ExperimentSpec, resources: Resources) -> dict[str, Any]:
    """Length in steps however it is given, network and messages by content."""
    interaction = spec.interaction
    fields = _stated(interaction, "steps", "exposures", "network", "messages")
    fields["steps"] = interaction.steps_for(spec.population.size)
    network = getattr(interaction, "network", None)
    if network is not None and network.kind != "complete":
        fields["network"] = _network_fields(network, spec.population.size, resources)
    if isinstance(interaction, ExternalSpec):
        fields["messages"] = digest(canonical_json(resources.messages(interaction)))
    return fields


def run_fields(spec: ExperimentSpec, resources: Resources) -> dict[str, Any]:
    """The resolved fields that can reach a prompt, a draw or a model, defaults omitted.

    Parameters
    ----------
    spec : ExperimentSpec
        One run's specification.
    resources : Resources
        What it refers to.

    Returns
    -------
    dict
        JSON values. Files enter by content, so that renaming one changes nothing; a prompt pack enters by
        the name of its folder, so that an edited template meets the prompts on record and is reported.
    """
    topic = resources.topic(spec.topic)
    claim = topic.claim(spec.topic.framing)
    fields: dict[str, Any] = {
        "population": _population_fields(spec, resources),
        "topic": {
            "name": topic.name,
            "framing": spec.topic.framing,
            "claim": claim.text,
            "masked": spec.topic.masked,
        },
        "interaction": _interaction_fields(spec, resources),
        "cognition": _stated(spec.cognition),
        "model": _model_fields(spec.model),
        "measurement": {"probe": _stated(spec.measurement.probe)},
    }
    if spec.prompts != "default":
        fields["prompts"] = PurePath(spec.prompts).name or spec.prompts
    if asked := _stated(spec.measurement.self_report):
        fields["measurement"]["self_report"] = asked
    scale = spec.scale.scale()
    if scale != OpinionScale():
        fields["scale"] = {"points": scale.points, "labels": scale.labels}
    if spec.interaction.needs:
        fields["measurement"]["needs"] = {
            each.variable: each.instrument_id
            # The first of several of one variable is meant: it is written last.
            for each in reversed(spec.instruments)
            if each.variable in spec.interaction.needs and not each.about
        }
    if spec.independent_over:
        fields["independent"] = {path: value_at(fields, spec, path) for path in spec.independent_over}
    found = canonical(fields)
    return {key: value for key, value in found.items() if value not in ({}, {"probe": {}})}


def value_at(fields: dict[str, Any], spec: ExperimentSpec, path: str) -> Any:
    """The resolved value at a dotted path; as specified where resolution leaves no field of that name."""
    for tree in (fields, spec.model_dump(mode="json")):
        node: Any = tree
        for key in path.split("."):
            node = node.get(key) if isinstance(node, dict) else None
        if node is not None:
            return canonical(node)
    return None


def run_id(spec: ExperimentSpec, fields: dict[str, Any], replicate: int) -> str:
    """Identity of a run: 24 hexadecimal characters.

    Parameters
    ----------
    spec : ExperimentSpec
        One run's specification; only its seed is read.
    fields : dict
        Of :func:`run_fields`.
    replicate : int
        From 0.
    """
    return digest(canonical_json([_VERSION, spec.seed, replicate, fields]))


def block(spec: ExperimentSpec, fields: dict[str, Any], replicate: int) -> str:
    """Name of the set of runs that share random draws.

    Returns
    -------
    str
        Seed, replicate and the values in `independent_over`, as in ``seed=1/replicate=0/topic.name=palms``.
    """
    parts = [f"seed={spec.seed}", f"replicate={replicate}"]
    for path, value in fields.get("independent", {}).items():
        plain = isinstance(value, (str, int, float, type(None)))
        parts.append(f"{path}={value if plain else digest(canonical_json(value))}")
    return "/".join(parts)
