"""Resources of a specification: topics, personas, surveys, prompt packs, messages and networks.

Each is read once: from the package's data, a file, or the contents of a manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import Field

from opinionsim.errors import SpecError, meant
from opinionsim.foundation.data import data_folder
from opinionsim.foundation.documents import Document, DocumentModel, read_document, read_text, validate
from opinionsim.foundation.streams import canonical_json
from opinionsim.networks import Network, build_network
from opinionsim.personas import PersonaSet, load_personas, parse_personas
from opinionsim.prompts import PromptPack, load_pack, pack_name
from opinionsim.registry import places
from opinionsim.specification._cast import participant_names
from opinionsim.specification._fields import ExperimentSpec, PopulationSpec, TopicSpec
from opinionsim.specification._survey_fields import draws_personas, draws_respondents, margins_of
from opinionsim.surveys import TABLE_SUFFIXES, Survey, from_margins, load_survey, with_each_value
from opinionsim.topics import Claim, Topic, load_topics, parse_topic

_Key = TypeVar("_Key")
_Loaded = TypeVar("_Loaded")

_SUFFIXES = (".yaml", ".yml", ".json")
#: Fields of topics that contents leave out where they say nothing.
_LEFT_OUT = {"question": "", "licence": "", "pass_on": True}
#: Key of the package's topics in contents: they are in several files.
_PACKAGE = "package"


class _Graph(DocumentModel):
    """A network by content."""

    directed: bool = False
    edges: tuple[tuple[int, int], ...] = Field(min_length=1)
    weights: tuple[float, ...] | None = None
    labels: tuple[str | None, ...] | None = None


class _Messages(DocumentModel):
    """A file of messages."""

    messages: tuple[str, ...] = Field(min_length=1)
    source: str = ""
    licence: str = ""
    pass_on: bool = True


class _Contents(DocumentModel):
    """All resources by content; the key is the reference as the specification spells it."""

    personas: dict[str, dict[str, Any]] = Field(default_factory=dict)
    topics: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    prompts: dict[str, dict[str, str]] = Field(default_factory=dict)
    messages: dict[str, _Messages] = Field(default_factory=dict)
    networks: dict[str, _Graph] = Field(default_factory=dict)
    surveys: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)


class Resources:
    """Reads the resources of specifications, and keeps them.

    Parameters
    ----------
    folder : str or Path or None
        Folder from which relative paths start; None means the current folder.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = Path(folder) if folder is not None else Path()
        self._pinned = _Contents()
        self._personas: dict[str, PersonaSet] = {}
        self._topic_files: dict[str, dict[str, Topic]] = {}
        self._used_topics: dict[str, dict[str, Topic]] = {}
        self._packs: dict[str, PromptPack] = {}
        self._messages: dict[str, _Messages] = {}
        self._networks: dict[str, Network] = {}
        self._surveys: dict[tuple[str, str], Survey] = {}
        self._candidates: dict[str, PersonaSet] = {}

    @classmethod
    def from_contents(cls, contents: Document | Mapping[str, Any], folder: str | Path | None = None) -> Resources:
        """Create resources from contents; files are read only for resources that these lack.

        Parameters
        ----------
        contents : Document or mapping
            Result of :meth:`contents`.
        folder : str or Path or None
            Folder from which relative paths start.

        Raises
        ------
        SpecError
            If the contents do not have that form.
        """
        resources = cls(folder)
        resources._pinned = validate(_Contents, contents, "contents")
        return resources

    def path(self, reference: str | None) -> str | None:
        """Path of a file that a specification names; None if it names none."""
        return None if reference is None else str(self._folder / reference)

    def contents(self) -> dict[str, Any]:
        """All resources read so far, as JSON values; the order of keys matters.

        Returns
        -------
        dict
            Contents from which :meth:`from_contents` creates the same resources without any file.
        """
        return {
            "personas": {reference: _personas_content(found) for reference, found in self._personas.items()},
            "topics": {
                reference: {name: _topic_content(topic) for name, topic in found.items()}
                for reference, found in self._used_topics.items()
            },
            "prompts": {reference: dict(pack.contents) for reference, pack in self._packs.items()},
            "messages": {reference: found.model_dump(mode="json") for reference, found in self._messages.items()},
            "networks": {reference: _network_content(network) for reference, network in self._networks.items()},
            "surveys": self._survey_contents(),
        }

    def personas(self, population: PopulationSpec) -> PersonaSet:
        """The personas that a population names or writes out.

        Raises
        ------
        SpecError
            If there is no such set or file, or it is not valid.
        """
        reference = population.personas
        if not isinstance(reference, str):
            return parse_personas(reference, "population.personas")
        return _once(self._personas, reference, self._find_personas)

    def candidates(self, spec: ExperimentSpec) -> PersonaSet:
        """All personas that an agent of a run can play.

        Returns
        -------
        PersonaSet
            The set that the population names or writes out; all respondents that match its query; or, for
            margins, personas that together have every value that can be drawn.

        Raises
        ------
        SpecError
            If there is no such set, file or respondent, or it is not valid.
        """
        if (given := margins_of(spec)) is not None:
            return with_each_value(given.margins, given.seed)
        if draws_respondents(spec):
            survey, query = self.survey(spec), spec.population.query
            return _once(self._candidates, f"{survey.identity} {query}", lambda _: survey.personas(query))
        return self.personas(spec.population)

    def drawn(self, spec: ExperimentSpec, rng: np.random.Generator) -> PersonaSet:
        """The personas of one run: drawn from the survey or from margins, or all personas if nothing is drawn.

        Raises
        ------
        SpecError
            As for :meth:`candidates`, and if there are fewer respondents than agents.
        """
        population = spec.population
        if (given := margins_of(spec)) is not None:
            return from_margins(given.margins, spec.size, rng, given.seed)
        if spec.survey is None or not draws_respondents(spec):
            return self.personas(population)
        weighted, again = spec.survey.weighting == "draw", spec.survey.replace
        survey = self.survey(spec)
        return survey.draw(spec.size, rng, population.query, weighted=weighted, replace=again).personas

    def survey(self, spec: ExperimentSpec) -> Survey:
        """The survey of a specification.

        Raises
        ------
        SpecError
            If there is none, or its file or mapping is missing or not valid.
        """
        if spec.survey is None:
            raise SpecError("survey is required but missing: give survey: {file: ..., mapping: ...}")
        reference = spec.survey.file, spec.survey.mapping
        return _once(self._surveys, reference, lambda _: self._find_survey(*reference))

    def _find_survey(self, file: str, mapping: str) -> Survey:
        content = self._pinned.surveys.get(file, {}).get(mapping)
        if content is not None:
            return Survey.from_content(content, f"survey {file}")
        found, chosen = (str(self._path(name)) if is_path(name) else name for name in (file, mapping))
        return load_survey(found, chosen)

    def _survey_contents(self) -> dict[str, Any]:
        """All surveys asked for, by file and mapping."""
        found: dict[str, Any] = {}
        for (file, mapping), survey in self._surveys.items():
            found.setdefault(file, {})[mapping] = survey.content()
        return found

    def resolved(self, spec: ExperimentSpec) -> ExperimentSpec:
        """A specification with values from its files: size, initial opinions, and whether the claim is masked.

        If a file cannot be read, its value does not change, and the checks report the reason.
        """
        population, topic, given = spec.population, spec.topic, spec.model_fields_set
        # A cast takes the place of a population, even one that is refused because it lists nobody.
        has_population = not spec.cast and ("population" in given or "cast" not in given)
        with suppress(SpecError):
            if has_population and None in (population.size, population.initial_opinions):
                players = () if draws_personas(spec) else self.personas(population).personas
                paired = players and all(each.opinion in spec.scale.points for each in players)
                found = {"size": len(players) or spec.size, "initial_opinions": "personas" if paired else "uniform"}
                found = {name: value for name, value in found.items() if getattr(population, name) is None}
                spec = spec.model_copy(update={"population": population.model_copy(update=found)})
        with suppress(SpecError):
            if topic.masked is None:
                topic = topic.model_copy(update={"masked": self.topic(topic).masked})
                spec = spec.model_copy(update={"topic": topic})
        return spec

    def names(self, spec: ExperimentSpec) -> tuple[str, ...] | None:
        """Names of agents that a network or graph may use, in order; empty if each run draws its own personas.

        None if agents play no persona.

        Raises
        ------
        SpecError
            If there is no such persona set, or it is not valid.
        """
        if spec.cast:
            return participant_names(spec)
        if spec.population.continuous or not spec.interaction.role_play:
            return None
        if draws_personas(spec):
            return ()
        return tuple(persona.name for persona in self.personas(spec.population).personas)

    def _find_personas(self, reference: str) -> PersonaSet:
        if reference in self._pinned.personas:
            return parse_personas(self._pinned.personas[reference], f"personas {reference}")
        if is_path(reference):
            return load_personas(self._path(reference))
        folder = data_folder("personas")
        file = folder / f"{reference}.yaml"
        if not file.is_file():
            raise SpecError(
                f"unknown persona set {reference!r}{meant(reference, _names(folder))}; valid: "
                f"{', '.join(_names(folder))}, or the path of a .yaml or .csv file"
            )
        return load_personas(file)

    def topic(self, spec: TopicSpec) -> Topic:
        """The topic a specification names or writes out.

        Raises
        ------
        SpecError
            If there is no such file or topic, or it is not valid.
        """
        if spec.definition is not None:
            return parse_topic(spec.definition, "topic.definition")
        reference = spec.file or _PACKAGE
        used = self._used_topics.setdefault(reference, {})
        return _once(used, spec.name, lambda name: self._named_topic(reference, name))

    def claim(self, spec: ExperimentSpec) -> Claim | None:
        """The claim that opinions of a run are about; None if agents have a task and no topic.

        Raises
        ------
        SpecError
            As :meth:`topic`, or if the topic has no such side.
        """
        return self.topic(spec.topic).claim(spec.topic.framing) if spec.has_topic else None

    def _named_topic(self, reference: str, name: str) -> Topic:
        pinned = self._pinned.topics.get(reference, {})
        if name in pinned:
            return parse_topic(pinned[name], f"topic {name}")
        topics = _once(self._topic_files, reference, self._find_topics)
        if name not in topics:
            more = ", or one in a file that topic.file names" if reference == _PACKAGE else ""
            valid = f"valid: {', '.join(topics)}{more}"
            raise SpecError(f"unknown topic {name!r}{meant(name, topics)}; {valid}", "topic.name")
        return topics[name]

    def _find_topics(self, reference: str) -> dict[str, Topic]:
        if reference != _PACKAGE:
            try:
                return load_topics(self._path(reference))
            except SpecError as error:
                raise error.at("topic.file") from None
        topics: dict[str, Topic] = {}
        for file in sorted(data_folder("topics").glob("*.yaml")):
            for name, topic in load_topics(file).items():
                if name in topics:
                    raise SpecError(f"{file}: topic {name!r} is already defined by another file of the folder")
                topics[name] = topic
        return topics

    def pack(self, prompts: str) -> PromptPack:
        """The prompt pack called `prompts`: a built-in one or a folder.

        Raises
        ------
        SpecError
            If there is no such pack, or it is not valid.
        """
        return _once(self._packs, prompts, self._find_pack)

    def _find_pack(self, reference: str) -> PromptPack:
        if reference in self._pinned.prompts:
            return PromptPack.from_contents(reference, self._pinned.prompts[reference])
        return load_pack(reference if pack_name(reference) in places("pack") else self._path(reference))

    def messages(self, given: str | tuple[str, ...]) -> tuple[str, ...]:
        """Messages from outside, either given or read from the named file.

        Raises
        ------
        SpecError
            If the file is missing or unreadable, or contains no message.
        """
        return given if not isinstance(given, str) else _once(self._messages, given, self._find_messages).messages

    def _find_messages(self, reference: str) -> _Messages:
        if reference in self._pinned.messages:
            return self._pinned.messages[reference]
        path = self._path(reference)
        if path.suffix in _SUFFIXES:
            document = read_document(path)
            found = validate(_Messages, document)
            for position, text in enumerate(found.messages):
                if not text.strip():
                    raise document.error(("messages", position), "must not be blank")
            return found
        messages = tuple(line.strip() for line in read_text(path).splitlines() if line.strip())
        if not messages:
            raise SpecError(f"{path}: contains no messages; write one per line")
        return _Messages(messages=messages)

    def network(self, file: str, options: Mapping[str, Any]) -> Network:
        """The network in a file, with the agents that the file names.

        Parameters
        ----------
        file : str
            Path of the file.
        options : mapping
            Options for reading it: the fields of the network `file`.

        Raises
        ------
        SpecError
            If the file is missing or is not a network.
        """
        reference = f"{file} {canonical_json(options)}" if options else file
        return _once(self._networks, reference, lambda _: self._find_network(reference, file, options))

    def _find_network(self, reference: str, file: str, options: Mapping[str, Any]) -> Network:
        pinned = self._pinned.networks.get(reference)
        if pinned is None:
            given = {**options, "kind": "file", "path": str(self._path(file))}
            return build_network(given, where="interaction.network")
        edges = {"edges": np.array(pinned.edges), "weights": pinned.weights, "directed": pinned.directed}
        size = None if pinned.labels is None else len(pinned.labels)
        found = build_network(edges, size, where="interaction.network")
        return replace(found, labels=pinned.labels)

    def _path(self, reference: str) -> Path:
        """A path of the specification, relative to its folder."""
        return self._folder / reference


def _once(cache: dict[_Key, _Loaded], reference: _Key, find: Callable[[_Key], _Loaded]) -> _Loaded:
    """The value of a reference, found at the first request and kept."""
    if reference not in cache:
        cache[reference] = find(reference)
    return cache[reference]


def is_path(reference: str) -> bool:
    """Whether a reference means a file and not a name: it has a folder or a suffix."""
    return "/" in reference or "\\" in reference or reference.endswith((*_SUFFIXES, *TABLE_SUFFIXES))


def _names(folder: Path) -> list[str]:
    """Names of the data files in a folder."""
    return sorted(file.stem for file in folder.glob("*.yaml"))


def _personas_content(found: PersonaSet) -> dict[str, Any]:
    told = asdict(found)
    personas = told.pop("personas")
    # The record is that of respondents, whom the survey holds.
    return {**told, "personas": [{name: each[name] for name in each if name != "record"} for each in personas]}


def _topic_content(topic: Topic) -> dict[str, Any]:
    return {name: value for name, value in topic.model_dump().items() if _LEFT_OUT.get(name) != value}


def _network_content(network: Network) -> dict[str, Any]:
    pairs, weights = network.edges
    stated = {} if weights is None else {"weights": weights.tolist()}
    called = {} if network.labels is None else {"labels": list(network.labels)}
    return {"directed": network.directed, "edges": pairs.tolist(), **stated, **called}
