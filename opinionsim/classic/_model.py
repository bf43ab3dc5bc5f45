"""What a classic model declares of itself: parameters, schemes, kernel, transition, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from opinionsim.classic._transition import Transition
from opinionsim.errors import SpecError

__all__ = ["ORDERS", "PICKS", "ClassicModel", "Parameter", "Source"]

Array = np.ndarray
#: Orders of update: at random with replacement, each agent once in random order, each once from 0, all at once.
ORDERS = ("random", "permutation", "sequential", "synchronous")
#: Who is drawn first: an agent that listens, an agent that speaks, or a pair.
PICKS = ("listener", "speaker", "edge")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a model.

    Attributes
    ----------
    default : number, bool or str
        Its value when none is given. Its type is that of the parameter.
    meaning : str
        In a few words.
    symbol : str
        As in the equation, in LaTeX.
    low, high : float
        Smallest and largest value.
    open_low, open_high : bool
        Whether these are excluded.
    choices : tuple of str
        Values of a parameter that names an option.
    per_agent : bool
        Whether every agent may have a value of its own; options and switches are everybody's.
    scaled : bool
        Whether it is in units of opinion; its default then belongs to the model's default range, and grows and
        shrinks with the range that is used.
    """

    default: float | int | bool | str
    meaning: str
    symbol: str = ""
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    choices: tuple[str, ...] = ()
    per_agent: bool = True
    scaled: bool = False

    def __post_init__(self) -> None:
        if self.choices or isinstance(self.default, bool):
            object.__setattr__(self, "per_agent", False)

    @property
    def valid(self) -> str:
        """What is valid, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if isinstance(self.default, bool):
            return "true or false"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        bounds = []
        if self.low > -math.inf:
            bounds.append(f"{'>' if self.open_low else '>='} {self.low:g}")
        if self.high < math.inf:
            bounds.append(f"{'<' if self.open_high else '<='} {self.high:g}")
        each = ", for all agents or one for each" if self.per_agent else ""
        return " ".join([kind, " and ".join(bounds)]).strip() + each

    def array(self, name: str, value: Any, n: int) -> Any:
        """The value as kernels take it: a number, or an array (n,) where agents differ.

        Raises
        ------
        SpecError
            If it is out of range, not a number, or of another size.
        """
        if self.choices:
            if value not in self.choices:
                raise self._invalid(name, value)
            return self.choices.index(value)
        if isinstance(self.default, bool):
            if not isinstance(value, (bool, np.bool_)):
                raise self._invalid(name, value)
            return bool(value)
        try:
            given = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._invalid(name, value) from None
        if isinstance(value, (str, bool)) or given.shape not in ((), (n,)) or (given.ndim and not self.per_agent):
            sizes = f" or {n} of them, one for each agent" if self.per_agent else ""
            if given.ndim:
                raise SpecError(f"{name} must be one number{sizes}; got an array of shape {given.shape}")
            raise self._invalid(name, value)
        wrong = ~self._within(given)
        if wrong.any():
            where = f" for agent {int(np.argmax(wrong))}" if given.ndim else ""
            raise self._invalid(name, float(given[wrong][0] if given.ndim else given), where)
        typed = given.astype(np.int64) if isinstance(self.default, int) else given
        return np.ascontiguousarray(typed) if typed.ndim else typed.item()

    def _within(self, given: np.ndarray) -> np.ndarray:
        above = given > self.low if self.open_low else given >= self.low
        below = given < self.high if self.open_high else given <= self.high
        if isinstance(self.default, int):
            whole = (given == np.round(given)) & (np.abs(given) < 2.0**62)
        else:
            whole = np.isfinite(given)
        return np.asarray(above & below & whole)

    def _invalid(self, name: str, value: Any, where: str = "") -> SpecError:
        return SpecError(f"{name} must be {self.valid}; got {value!r:.60}{where}")


class Source(NamedTuple):
    """Where a model was published."""

    reference: str
    """Authors, year, title and journal."""
    doi: str
    """Digital object identifier; empty where there is none."""


@dataclass(frozen=True)
class ClassicModel:
    """A classic opinion model.

    Attributes
    ----------
    name : str
        What calls it: lower case, words joined by hyphens.
    title : str
        As the field calls it.
    kind : str
        ``continuous`` or ``discrete`` opinions.
    family : str
        Class of influence after Flache et al. 2017 (doi:10.18564/jasss.3521): ``assimilative``,
        ``similarity-biased``, ``repulsive`` or ``reinforcing``.
    summary : str
        What happens in an event, in a sentence or two.
    equation : str
        The update, in LaTeX.
    behaviour : str
        What it comes to in the limit.
    source : tuple of Source
        First publication first.
    parameters : type
        A NamedTuple whose fields are annotated with a :class:`Parameter` each, as kernels take them. A field `limits`
        beside them holds the range of opinions, for kernels that need it.
    range : (float, float)
        Default range of opinions.
    orders, picks, sides : tuple of str
        Schemes that are possible, the default first: order of update, who is drawn first, who of a pair updates
        (``one``, ``two``). Empty where the model leaves no choice.
    meets_itself : tuple of bool
        Whether in the complete graph an agent may be drawn as its own partner, the default first.
    kernel, vector : callable
        Carry opinions (N,), or (N, D), forward; see :func:`opinionsim.classic._pairwise.pairwise_kernel`.
    update : callable or None
        One meeting, where agents meet in pairs: such a model runs on recorded pairs and on any schedule.
    transition : callable
        ``transition(before, messages, weights, p, range) -> Transition``, with ``start`` where it goes back to it.
    encode, decode : callable
        From opinions in a range to the states of the kernel, and back; ``(values, range) -> values``.
    prepare : callable or None
        What becomes of the parameters before they reach the kernel; ``(p) -> p``.
    compiles : bool
        Whether the kernel is to be compiled; others rest on compiled libraries.
    conserves : frozenset of str
        What the default scheme conserves with one value of each parameter for all: the ``mean`` of opinions, or, of
        single numbers on the complete graph, their ``order``.
    keeps_range, keeps_consensus : bool
        Whether opinions stay in their range, and consensus is a fixed point.
    states : str
        ``any`` number, ``copied`` (no value but those present at first) or ``two`` (the ends of the range).
    needs : frozenset of str
        What it asks of a network: ``partners`` (nobody without one). What it allows: ``signs`` (negative weights).
    """

    name: str
    title: str
    kind: Literal["continuous", "discrete"]
    family: str
    summary: str
    equation: str
    behaviour: str
    source: tuple[Source, ...]
    parameters: type[Any]
    range: tuple[float, float]
    kernel: Callable[..., None]
    transition: Callable[..., Transition]
    orders: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    meets_itself: tuple[bool, ...] = (False,)
    vector: Callable[..., None] | None = None
    update: Callable[..., float] | None = None
    encode: Callable[[np.ndarray, tuple[float, float]], np.ndarray] | None = None
    decode: Callable[[np.ndarray, tuple[float, float]], np.ndarray] | None = None
    conserves: frozenset[str] = frozenset()
    keeps_range: bool = True
    keeps_consensus: bool = True
    states: Literal["any", "copied", "two"] = "any"
    needs: frozenset[str] = frozenset({"partners"})
    prepare: Callable[[Any], Any] | None = None
    compiles: bool = True
    example: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def declared(self) -> dict[str, Parameter]:
        """Parameters by name."""
        hints = get_type_hints(self.parameters, include_extras=True)
        return {name: next(each for each in get_args(hint)[1:] if isinstance(each, Parameter))
                for name, hint in hints.items() if get_origin(hint) is Annotated}  # fmt: skip

    @property
    def schemes(self) -> dict[str, tuple[Any, ...]]:
        """Scheme options that leave a choice or are worth recording, by name, the default first."""
        found: dict[str, Sequence[Any]] = {
            "order": self.orders,
            "pick": self.picks,
            "sides": self.sides,
            "meets_itself": self.meets_itself if len(self.meets_itself) > 1 else (),
        }
        return {name: tuple(values) for name, values in found.items() if values}

    def with_defaults(self, settings: Mapping[str, Any], span: tuple[float, float]) -> dict[str, Any]:
        """Every parameter by name: as set, or its default, which grows with the range if it is in units of opinion."""
        width = (span[1] - span[0]) / (self.range[1] - self.range[0])
        scale = width if math.isfinite(width) else 1.0
        return {
            name: settings.get(name, each.default * scale if each.scaled else each.default)  # type: ignore[operator]
            for name, each in self.declared.items()
        }
