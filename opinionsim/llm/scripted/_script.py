"""A chat model that follows a script, without a network or learning.

The model finds persona, memory, received posts and disposition by the delimiters of the prompt pack. It has one
position on the opinion scale, moves it by a documented rule (:func:`latent`) and answers in plain sentences. It
replaces a language model that would cost money or differ from day to day. Its replies are not evidence of anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult

from opinionsim.errors import SpecError
from opinionsim.foundation.streams import digest
from opinionsim.llm import phrases
from opinionsim.llm.scripted._scene import Scene, level_of
from opinionsim.llm.scripted._words import Draws, ScriptedParameters, check_pull, choice, say, settle
from opinionsim.messages import ChatMessage, text_id
from opinionsim.opinions import OpinionScale
from opinionsim.prompts import BLOCKS, Marks, load_pack
from opinionsim.registry import Part, find, is_path, known, places

T = TypeVar("T")

#: Tasks that state the position held, like those whose part says so; every other task is an occasion to change it.
_STATING = frozenset({"write", "probe", "self-report", "reflect_first", "reflect"})

#: Roles by the names LangChain has for them.
_ROLES = {"human": "user", "ai": "assistant"}
#: Roles of the messages that prompts are mostly made of.
_SPEAKERS: Mapping[type, str] = {HumanMessage: "user", AIMessage: "assistant", SystemMessage: "system"}

_STRONG_BIAS = re.compile(r"\b(?:strong|strongly|only|completely)\b", re.IGNORECASE)
_NAME = re.compile(r"^\s*(?:your )?name(?: is|:)\s*([^\n.,;:]{1,80})", re.IGNORECASE | re.MULTILINE)


class _Reading(NamedTuple):
    """What one message of a prompt says, independent of the messages around it."""

    role: str
    own: int | None
    """Last level the agent itself stated in the memory, or in messages of its own, that are shown."""
    received: tuple[int | None, ...]
    """Level of each post shown outside memory; None for an unrecognised one."""
    task: str
    """The text outside memory and posts."""
    persona: str
    disposition: str
    masked: bool
    claim: bool
    words: int
    line: str
    """Identity of the message: role and identity of the text."""


@lru_cache(maxsize=4)
def _reader(label: str, *delimiters: tuple[str, str]) -> Callable[[str, str], _Reading]:
    """A function that reads a message, given as role and text, by the delimiters of a prompt pack.

    `label` introduces the reader's own messages among those received; empty where the pack has no such label.
    """
    marks = Marks(**dict(zip(BLOCKS, delimiters, strict=True)), cues={})  # type: ignore[arg-type]
    mine = re.compile(rf"{re.escape(label)}\s*{re.escape(marks.post[0])}(.*?){re.escape(marks.post[1])}", re.DOTALL)

    # Memory repeats its messages in every later prompt of the same agent; each text is read once.
    @lru_cache(maxsize=1 << 15)
    def read(role: str, text: str) -> _Reading:
        events, present = marks.parted("history", text)
        own_words = [marks.without("post", event) for event in events]
        if label and label in present:
            own_words += mine.findall(present)
            present = mine.sub("", present)
        posts, task = marks.parted("post", present)
        if role == "assistant":
            own_words.append(task)
        return _Reading(
            role=role,
            own=_newest(phrases.stated(words) for words in reversed(own_words)),
            received=tuple([phrases.stance(post) for post in posts]),
            task=task,
            persona="\n".join(marks.blocks("persona", task)).strip(),
            disposition="\n".join(marks.blocks("disposition", task)).strip(),
            masked=phrases.MASKED in task or phrases.MASKED.lower() in task.lower(),
            claim=marks.claim[0] in task,
            words=phrases.n_words(text),
            line=f"{role}:{text_id(text)}",
        )

    return read


def _newest(levels: Iterable[int | None]) -> int | None:
    """The first of some levels that is not None; they come newest first."""
    return next((level for level in levels if level is not None), None)


@lru_cache(maxsize=1 << 12)
def _initial_belief(persona: str, scale: OpinionScale) -> int | None:
    """The scale point whose verbal anchor stands in a line on belief, or else on opinion, of the persona block."""
    points = dict(zip((label.lower() for label in scale.labels), scale.points, strict=True))
    longest_first = sorted(points, key=len, reverse=True)
    anchor = re.compile(r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")\b")
    lines = persona.lower().splitlines()
    telling = [line for word in ("belief", "opinion") for line in lines if word in line]
    found = anchor.search("\n".join(telling))
    return points[found.group()] if found else None


@lru_cache(maxsize=1 << 12)
def _told_name(persona: str) -> str:
    """The name in the persona block; empty when it gives none."""
    found = _NAME.search(persona)
    return found.group(1).strip() if found else ""


@lru_cache(maxsize=1 << 8)
def _bias(text: str) -> str:
    """Strength of the bias that a disposition states: ``none`` (there is no text), ``weak`` or ``strong``."""
    return "none" if not text else "strong" if _STRONG_BIAS.search(text) else "weak"


class _Prompt(NamedTuple):
    """What a whole prompt says."""

    position: int | None
    """Last level the agent stated in its memory, or in messages of its own."""
    belief: int | None
    """Scale point of the initial belief in the persona block."""
    received: tuple[int | None, ...]
    """Levels of the posts now shown."""
    act: str
    """Name of the template that states the task; ``report`` where no cue is found."""
    bias: str
    """``none``, ``weak`` or ``strong``."""
    name: str
    """The agent's name; empty when the prompt gives none."""
    masked: bool
    claim: bool
    """Whether a message states a claim."""
    told: str
    """The system message and the task, outside memory and posts."""
    words: int
    key: str
    """Hash of the prompt."""


def _spoken(message: BaseMessage | ChatMessage) -> tuple[str, str]:
    """Role and text of a message of either class."""
    if isinstance(message, ChatMessage):
        return message
    content = message.content
    return _ROLES.get(message.type, message.type), content if isinstance(content, str) else str(message.text)


def _readings(messages: Sequence[BaseMessage | ChatMessage], marks: Marks) -> list[_Reading]:
    """What each message of a prompt says."""
    own = marks.labels.get("own", "")
    read = _reader(own, marks.persona, marks.history, marks.post, marks.claim, marks.disposition)
    try:
        # Most messages are cached: examining each would take most of the time.
        return [read(_SPEAKERS[type(message)], message.content) for message in messages]  # type: ignore[arg-type]
    except (KeyError, TypeError):
        # Another class, or contents in parts, which cannot be a key of the cache.
        return [read(*_spoken(message)) for message in messages]


def _understand(messages: Sequence[BaseMessage | ChatMessage], marks: Marks, scale: OpinionScale) -> _Prompt:
    """Find in a prompt what decides the reply."""
    readings = _readings(messages, marks)
    task = next((reading for reading in reversed(readings) if reading.role == "user"), None)
    if task is None:
        raise SpecError("scripted model: a prompt needs at least one user message")
    cues = [(len(cue), template) for template, cue in marks.cues.items() if cue in task.task]
    persona = next((reading.persona for reading in readings if reading.persona), "")
    return _Prompt(
        position=_newest(reading.own for reading in reversed(readings)),
        belief=_initial_belief(persona, scale),
        received=task.received,
        act=max(cues)[1] if cues else "report",
        bias=_bias("\n".join([reading.disposition for reading in readings if reading.disposition])),
        name=_told_name(persona),
        masked=any(reading.masked for reading in readings),
        claim=any(reading.claim for reading in readings),
        told="\n".join([reading.task for reading in readings if reading.role == "system"] + [task.task]),
        words=sum([reading.words for reading in readings]),
        # Another spelling of the hashed prompt would draw other replies.
        key=digest("\n".join([reading.line for reading in readings])),
    )


def _answer(task: str) -> Part | None:
    """The part that answers a task, by the template or itself; None where the task asks for a stance in sentences."""
    there = is_path(task) or task in places("scripted") or known("scripted", task)
    return find("scripted", task) if there else None


def _value(level: int, scale: OpinionScale) -> float:
    """Place on the scale of one of the five intensities, which lie evenly from its lowest to its highest point."""
    neutral = scale.neutral
    return neutral + level * (scale.highest - neutral) / 2


def _moved(prompt: _Prompt, parameters: ScriptedParameters, scale: OpinionScale) -> float:
    """The position after what the prompt shows; see :func:`latent`."""
    if prompt.position is not None:
        x = _value(prompt.position, scale)
    elif prompt.belief is not None:
        x = float(prompt.belief)
    else:
        x = scale.neutral if parameters.pull is None else parameters.pull
    answer = _answer(prompt.act)
    if prompt.act not in _STATING and not (answer and answer.declared.get("states")):
        weights = {"none": 1.0, "weak": parameters.weak_bias, "strong": parameters.strong_bias}
        neutral = scale.neutral
        for level in prompt.received:
            if level is not None:
                post = _value(level, scale)
                contradicts = (post - neutral) * (x - neutral) < 0
                x += parameters.susceptibility * (weights[prompt.bias] if contradicts else 1.0) * (post - x)
        if parameters.pull is not None:
            x += parameters.pull_strength * (parameters.pull - x)
    return min(max(x, scale.lowest), scale.highest)


def latent(
    messages: Sequence[BaseMessage | ChatMessage],
    parameters: ScriptedParameters,
    *,
    marks: Marks,
    scale: OpinionScale | None = None,
) -> float:
    """The position on the scale around which the scripted model draws its reply to a prompt.

    This is a pure function without noise. The agent's position x is the newest stance in its own words in memory
    (outside the posts that it read). If there is none, x is the initial belief, from the verbal anchor in a line on
    belief or opinion of the persona block; otherwise `pull`, or else neutral.

    - Writing, reflecting and answering off the record state x.
    - Any other task moves it. For each post shown outside memory, in order, x becomes
      x + susceptibility * w * (post - x). The weight w is 1, but `weak_bias` or `strong_bias` for a post on
      the other side of neutral from x when the prompt holds a disposition: a strong bias if it says
      "strong", "strongly", "only" or "completely", else a weak one. A post nothing can be read from (see
      :func:`opinionsim.llm.phrases.stance`) does not count. Then, with a pull, x becomes
      x + pull_strength * (pull - x).

    Parameters
    ----------
    messages : sequence of BaseMessage or ChatMessage
        The prompt. Its last user message states the task.
    parameters : ScriptedParameters
        Susceptibility, pull and bias weights.
    marks : Marks
        Delimiters and cues of the prompt pack.
    scale : OpinionScale, optional
        The opinion scale; default -2..2.

    Returns
    -------
    float
        In [scale.lowest, scale.highest].

    Raises
    ------
    SpecError
        If there is no user message.
    """
    scale = OpinionScale() if scale is None else scale
    return _moved(_understand(messages, marks, scale), parameters, scale)


def _point(centre: float, spread: float, rounds: bool, scale: OpinionScale, draws: Draws) -> int:
    """The scale point a closed answer names: drawn as intensities are."""
    noisy = min(max(centre + spread * draws.normal(), scale.lowest), scale.highest)
    if rounds:
        return scale.nearest(noisy)
    below = max(point for point in scale.points if point <= noisy)
    above = min(point for point in scale.points if point >= noisy)
    return above if draws.uniform() * (above - below) < noisy - below else below


def _tokens(words: int) -> int:
    """Estimate of the number of tokens: four for three words."""
    return math.ceil(words * 4 / 3)


class ScriptedChatModel(BaseChatModel):
    """The scripted chat model.

    A reply expresses one of five intensities around :func:`latent`. The model adds noise of standard deviation noise *
    temperature, clips the sum to the scale, and draws one of the two intensities around it with probabilities that
    preserve the expectation. At temperature 0, it takes the nearest intensity without a draw. The reply then depends
    only on the messages, and moves of less than half an intensity are lost. The five intensities lie evenly over the
    scale, on its points if it has five.

    Posts state a stance among a few other sentences. Reports begin with the agent's name, reason in steps and end with
    the stance. Probes are one sentence, self-reports one number, reflections three sentences. Replies call the claim
    "Theory XYZ" or "this theory" if the prompt does, otherwise "the claim", and never restate it.

    Parameters
    ----------
    preset : str
        ``influence`` (default) or ``attractor``: sets all parameters that are not given, see :data:`PRESETS`.
    temperature : float
        >= 0, default 0.7.
    marks : Marks, optional
        Delimiters and cues of the prompt pack; default those of the default pack.
    scale : OpinionScale, optional
        The opinion scale; default -2..2.
    parameters : ScriptedParameters, optional
        All parameters, instead of those of the preset.
    **options : Any
        Single parameters of :class:`ScriptedParameters`, and fields of LangChain's ``BaseChatModel``.

    Raises
    ------
    SpecError
        If an option is unknown, a value is out of range, or `pull` is not on the scale.

    Notes
    -----
    Calls accept ``seed`` (int, default 0). Replies are a function of messages and seed. Usage is estimated from word
    counts. ``stop`` is accepted but ignored, because replies are short. LangChain's prompt-keyed cache is off, because
    it would make replicates identical.
    """

    preset: str
    temperature: float
    marks: Marks
    scale: OpinionScale
    parameters: ScriptedParameters

    def __init__(
        self,
        *,
        preset: str = "influence",
        temperature: float = 0.7,
        marks: Marks | None = None,
        scale: OpinionScale | None = None,
        parameters: ScriptedParameters | None = None,
        **options: Any,
    ) -> None:
        others = set(BaseChatModel.model_fields)
        scale = OpinionScale() if scale is None else scale
        settled = settle(scale, preset=preset, temperature=temperature, parameters=parameters, others=others, **options)
        options = {name: value for name, value in options.items() if name in others}
        super().__init__(
            **{"cache": False, **options},
            preset=preset,
            temperature=float(temperature),
            marks=load_pack().marks if marks is None else marks,
            scale=scale,
            parameters=settled,
        )

    def bound(self, marks: Marks, scale: OpinionScale) -> ScriptedChatModel:
        """A copy that reads the delimiters and cues of `marks` and speaks on `scale`.

        Raises
        ------
        SpecError
            If the pull is not on the scale.
        """
        check_pull(self.parameters, scale)
        return self.model_copy(update={"marks": marks, "scale": scale})

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        settings = {each.name: getattr(self.parameters, each.name) for each in fields(ScriptedParameters)}
        return {"model_name": "scripted", "preset": self.preset, "temperature": self.temperature, **settings}

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._reply(messages, kwargs.get("seed", 0))

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._reply(messages, kwargs.get("seed", 0))

    def _refuses(self, act: str, position: float) -> bool:
        """Whether the act and the position are such as the model refuses."""
        side, beyond = self.parameters.refusal_side, position - self.scale.neutral
        there = side == "both" or (beyond < 0 if side == "negative" else beyond > 0)
        return there and (self.parameters.refusal_of == "all" or act == "write")

    def _reply(self, messages: list[BaseMessage], seed: int | None) -> ChatResult:
        """Read the prompt, move, draw, and put it into words."""
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise SpecError(f"scripted model: seed must be an integer; got {seed!r}")
        prompt = _understand(messages, self.marks, self.scale)
        greedy = self.temperature == 0
        draws = Draws(prompt.key if greedy else f"{prompt.key}:{seed or 0}")
        centre = _moved(prompt, self.parameters, self.scale)
        if draws.uniform() < self.parameters.refusal_rate and self._refuses(prompt.act, centre):
            text = draws.pick(phrases.REFUSALS)
        else:
            spread = self.parameters.noise * self.temperature
            if options := choice(prompt.told):
                text = str(1 + int(draws.uniform() * options))
            elif answer := _answer(prompt.act):
                task, scale = _spoken(messages[-1])[1], self.scale
                told = (prompt.act, prompt.name, prompt.received, prompt.masked, prompt.claim, prompt.told)
                scene = Scene(*told, task, centre, spread, greedy, scale, self.marks.post)
                text = answer.build(scene, draws, options={})
                if not isinstance(text, str):
                    raise SpecError(f"scripted answer {answer.name} must return a text; got {text!r:.80}")
            elif prompt.act == "self-report":
                text = str(_point(centre, spread, greedy, self.scale, draws))
            else:
                text = say(prompt, level_of(centre, spread, greedy, self.scale, draws), draws)
        given, said = _tokens(prompt.words), _tokens(phrases.n_words(text))
        message = AIMessage(
            content=text,
            usage_metadata=UsageMetadata(input_tokens=given, output_tokens=said, total_tokens=given + said),
            response_metadata={"model_name": "scripted", "finish_reason": "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])
