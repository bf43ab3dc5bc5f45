"""Declarations of classic models: parameters, schemes, kernel, transition and sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from opinionsim.classic._transition import Received, Transition
from opinionsim.errors import SpecError
from opinionsim.foundation.bibliography import cited
from opinionsim.registry import described

if TYPE_CHECKING:
    from opinionsim.classic.kernels._process import Setup
    from opinionsim.classic.kernels._stepping import Maker, Stop
    from opinionsim.classic.kernels._ties import Ties
    from opinionsim.networks import Network

#: Orders of update: at random with replacement, each agent once in random order, each once from 0, all at once.
ORDERS = ("random", "permutation", "sequential", "synchronous")
#: Who is drawn first: an agent that listens, an agent that speaks, or a pair.
PICKS = ("listener", "speaker", "edge")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a model.

    Attributes
    ----------
    default : number, bool, str or tuple
        Value if none is given. Its type is the type of the parameter.
    meaning : str
        What the parameter means, in a few words.
    symbol : str
        Symbol in the equation, in LaTeX.
    interval : str
        The valid values in mathematical notation: ``(0, 1]`` excludes 0.
    choices : tuple of str
        Values of a parameter that names an option.
    per_agent : bool
        Whether each agent may have a separate value; options and switches apply to all agents.
    scaled : bool
        Whether the parameter is in units of opinion. If so, its default applies to the model's default range and scales
        with the range in use.
    reaches : str
        For a parameter that is compared with distances of opinions: ``threshold`` if exactly this distance is within it
        when the option ``threshold`` is ``<=``, or ``beyond`` if it is within it when that option is ``<``. Empty for
        other parameters.
    opinions : bool
        Whether the parameter is a list of opinions in the range, the same for all agents. A number means one opinion.
    idle : bool
        Whether the parameter does nothing at 0. Kernels are then compiled without it and have an option of that name.
    beside : str
        Another parameter that this one needs. Setting this one is an error if the other is neither set nor above 0 by
        default.
    """

    default: float | int | bool | str | tuple[float, ...]
    meaning: str
    symbol: str = ""
    interval: str = "[0, inf)"
    choices: tuple[str, ...] = ()
    per_agent: bool = True
    scaled: bool = False
    reaches: Literal["", "threshold", "beyond"] = ""
    opinions: bool = False
    idle: bool = False
    beside: str = ""

    def __post_init__(self) -> None:
        if self.choices or isinstance(self.default, bool) or self.opinions:
            object.__setattr__(self, "per_agent", False)

    @property
    def _ends(self) -> tuple[float, float]:
        """The ends of the interval."""
        low, high = self.interval[1:-1].split(",")
        return float(low), float(high)

    @property
    def valid(self) -> str:
        """The valid values, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if isinstance(self.default, bool):
            return "true or false"
        if self.opinions:
            return "an opinion, or a list of them"
        low, high = self._ends
        bounds = [f"{'>' if self.interval[0] == '(' else '>='} {low:g}"] if low > -math.inf else []
        bounds += [f"{'<' if self.interval[-1] == ')' else '<='} {high:g}"] if high < math.inf else []
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        each = ", for all agents or one for each" if self.per_agent else ""
        return f"{kind} {' and '.join(bounds)}".strip() + each

    def array(self, name: str, value: Any, n: int) -> Any:
        """Convert a value for kernels: to a number, an array (n,) if agents differ, or an array of opinions.

        Raises
        ------
        SpecError
            If the value is out of range, not a number, or has another size.
        """
        if self.choices or isinstance(self.default, bool):
            known = value in self.choices if self.choices else isinstance(value, (bool, np.bool_))
            if not known:
                raise self._invalid(name, value)
            return self.choices.index(value) if self.choices else bool(value)
        try:
            given = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._invalid(name, value) from None
        if self.opinions:
            if isinstance(value, (str, bool)) or given.ndim > 1 or not np.isfinite(given).all():
                raise self._invalid(name, value)
            return np.atleast_1d(given)
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
        low, high = self._ends
        above = given > low if self.interval[0] == "(" else given >= low
        below = given < high if self.interval[-1] == ")" else given <= high
        if isinstance(self.default, int):
            return np.asarray(above & below & (given == np.round(given)) & (np.abs(given) < 2.0**62))
        return np.asarray(above & below & np.isfinite(given))

    def _invalid(self, name: str, value: Any, where: str = "") -> SpecError:
        return SpecError(f"{name} must be {self.valid}; got {value!r:.60}{where}")


def strict_bound(distance: Any, span: tuple[float, float], *, inclusive: bool) -> Any:
    """Return the number that a distance of opinions is less than if and only if it is within `distance`.

    Opinions are rounded, so a distance d counts as exactly at a distance e if abs(d - e) <= 4 * 2^-52 * max(abs(low),
    abs(high)), in a range from low to high. Evenly spaced opinions then meet as exact rational numbers would.

    Parameters
    ----------
    distance : float or ndarray
        The distance.
    span : (float, float)
        Range of opinions.
    inclusive : bool
        Whether opinions at exactly that distance are within it.
    """
    largest = max(abs(span[0]), abs(span[1]))
    rounding = 4 * 2.0**-52 * largest if math.isfinite(largest) else 0.0
    moved = np.nextafter(distance + rounding, np.inf) if inclusive else np.asarray(distance) - rounding
    return moved if np.ndim(moved) else float(moved)


def check_range(span: Any, *, endless: bool = False) -> tuple[float, float]:
    """Return a range of opinions as two floats.

    Raises
    ------
    SpecError
        If it is not two numbers, the lower one first, or if it is infinite and `endless` is false.
    """
    try:
        low, high = (float(end) for end in span)
    except (TypeError, ValueError):
        raise SpecError(f"range must be two numbers, the lower one first; got {span!r:.60}") from None
    if not low < high:
        raise SpecError(f"range must be two numbers, the lower one first; got {span!r:.60}")
    if not (np.isfinite(high - low) or (endless and low == -np.inf and high == np.inf)):
        raise SpecError(f"range must have finite ends{', or none at all' if endless else ''}; got {span!r:.60}")
    return low, high


Coding = Callable[[np.ndarray, tuple[float, float]], np.ndarray]


class Units(NamedTuple):
    """Units in which the equations of a model are written.

    Attributes
    ----------
    encode, decode : callable
        From opinions in a range to these units, and back: ``(values, range) -> values``.
    """

    encode: Coding
    decode: Coding


#: Opinions as they are.
OPINIONS = Units(lambda values, span: values, lambda values, span: values)
#: Distances from the lower end in parts of the range, 0 to 1.
SHARES = Units(
    lambda values, span: (values - span[0]) / (span[1] - span[0]),
    lambda values, span: np.clip(span[0] + (span[1] - span[0]) * values, *span),
)
#: Distances from the middle of the range, positive towards its upper end.
CENTRED = Units(
    lambda values, span: values - (span[0] + span[1]) / 2,
    lambda values, span: np.clip(values + (span[0] + span[1]) / 2, *span),
)
#: The two ends of the range as 0 and 1.
ENDS = Units(
    lambda values, span: np.where(values == span[1], 1.0, 0.0),
    lambda values, span: np.where(values > 0.5, span[1], span[0]),
)


@dataclass(frozen=True)
class ClassicModel:
    """A classic opinion model.

    Attributes
    ----------
    name : str
        Name of the model: lower case, words joined by hyphens.
    family : str
        Class of influence after Flache et al. 2017 (doi:10.18564/jasss.3521): ``assimilative``,
        ``similarity-biased``, ``repulsive`` or ``reinforcing``.
    parameters : type
        A NamedTuple in which the default of each field is a :class:`Parameter`. Kernels receive the parameters in this
        form. An additional field `limits` contains the range of opinions for kernels that need it. The docstring
        describes the model; see Notes.
    kernel, vector : callable
        Makers of the kernels that update opinions (R, N) or (R, N, D); see :func:`kernels.step_kernel`.
    transition : callable
        ``transition(received, p)``: the next opinions (T,) of receivers, or their distribution, a
        :class:`Transition`, in the model's units. It is written independently of the kernel.
    update : callable or None
        Update of one meeting, if agents meet in pairs. Such models also run on recorded pairs and on any schedule.
    range : (float, float)
        Default range of opinions.
    units : Units
        Units of the kernel and the transition.
    orders, picks, sides : tuple of str
        Possible schemes, the default first: order of updates, which agent is drawn first, and how many of a pair update
        (``one``, ``two``). Empty if the model allows only one.
    meets_itself : tuple of bool
        Whether an agent may be drawn as its own partner on the complete graph, the default first.
    prepare : callable or None
        Converts parameters to the form that the kernel uses: ``(p) -> p``.
    ties : callable or None
        ``(network, states (N,), p) -> Ties``: the ties at the start of a run, if the network changes with opinions.
    frozen : callable or None
        Criterion for a state in which nothing can change: ``(variant) -> Stop``. It raises a SpecError if the model
        never comes to rest with these settings.
    at_rest : str
        The same criterion in words, or the reason why there is none.
    shrinks : bool
        Whether agents that are within `epsilon` of each other keep moving closer without end.
    carried : int
        Number of values that an agent has in addition to its opinion, such as a velocity. All start at 0. In `start`,
        which has shape (1 + carried, N), they follow the initial opinions.
    measures : tuple of str
        Metrics that distinguish states of the model. They are used if you name none.
    conserves : frozenset of str
        What the default scheme conserves if all agents have the same parameters: the ``mean`` of opinions or, for
        single numbers on the complete graph, their ``order``.
    keeps_range, keeps_consensus : bool
        Whether opinions stay in their range, and consensus is a fixed point.
    states : str
        ``any`` number, ``copied`` (only values present at the start), ``two`` (the ends of the range) or ``traits``:
        for each agent, `features` whole numbers, each from 0 to `traits` - 1, where `features` and `traits` are
        parameters.
    needs : frozenset of str
        ``partners``: every agent must have a partner in the network. ``signs``: weights may be negative. ``shares``:
        weights must be at most 1. ``start``: the transition uses initial opinions.
    example : mapping
        Arguments of :func:`opinionsim.classic.simulate` for a small run in the documentation.

    Notes
    -----
    The docstring of the parameters describes the model. It contains a line with its name in the literature, a paragraph
    about what happens in an event, and items ``- Equation: ...`` (the update, in LaTeX), ``- Behaviour: ...`` (its
    limiting behaviour) and, for each publication, ``- Source: ...`` (author and year if the publication is in the
    bibliography of the package, such as ``Deffuant et al. 2000``; otherwise the whole reference).
    """

    part_kind: ClassVar[str] = "classic_model"

    name: str
    family: str
    parameters: type[Any]
    kernel: Maker
    transition: Callable[[Received, Any], Transition | np.ndarray]
    update: Callable[..., float] | None = None
    vector: Maker | None = None
    range: tuple[float, float] = (0.0, 1.0)
    units: Units = OPINIONS
    orders: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    sides: tuple[str, ...] = ()
    meets_itself: tuple[bool, ...] = (False,)
    conserves: frozenset[str] = frozenset()
    keeps_range: bool = True
    keeps_consensus: bool = True
    states: Literal["any", "copied", "two", "traits"] = "any"
    needs: frozenset[str] = frozenset({"partners"})
    prepare: Callable[[Any], Any] | None = None
    ties: Callable[[Network, np.ndarray, Any], Ties] | None = None
    frozen: Callable[[Setup], Stop] | None = None
    at_rest: str = ""
    shrinks: bool = False
    carried: int = 0
    measures: tuple[str, ...] = ("bias", "diversity")
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def home(self) -> str:
        """The module that declares the model."""
        return self.parameters.__module__

    @cached_property
    def _told(self) -> tuple[str, str, dict[str, list[str]]]:
        return described(self.parameters)

    @property
    def title(self) -> str:
        """Name in the literature, or the name in specifications if docstrings were stripped (python -OO)."""
        return self._told[0].removesuffix(".") or self.name

    @property
    def summary(self) -> str:
        """What happens in an event, in one or two sentences."""
        return self._told[1]

    @property
    def equation(self) -> str:
        """The update, in LaTeX."""
        return " ".join(self._told[2].get("Equation", []))

    @property
    def behaviour(self) -> str:
        """Limiting behaviour."""
        return " ".join(self._told[2].get("Behaviour", []))

    @property
    def source(self) -> tuple[str, ...]:
        """Publications, the main one first, as the bibliography or the docstring gives them."""
        named = self._told[2].get("Source", [])
        return tuple(each for text in named for each in ([work.text for work in cited(text)] or [text]))

    @property
    def kind(self) -> str:
        """``continuous``, or ``discrete`` if no new values of opinions can arise."""
        return "continuous" if self.states == "any" else "discrete"

    @cached_property
    def declared(self) -> dict[str, Parameter]:
        """Parameters by name."""
        fields: dict[str, Any] = self.parameters._field_defaults
        return {name: each for name, each in fields.items() if isinstance(each, Parameter)}

    @property
    def listed(self) -> dict[str, Any]:
        """What a list of models says of it."""
        return {"parameters": list(self.declared), "what": self.title}

    @property
    def schemes(self) -> dict[str, tuple[Any, ...]]:
        """Scheme options that offer a choice or are worth recording, by name, the default first."""
        found: dict[str, Sequence[Any]] = {
            "order": self.orders,
            "pick": self.picks,
            "sides": self.sides,
            "meets_itself": self.meets_itself if len(self.meets_itself) > 1 else (),
        }
        return {name: tuple(values) for name, values in found.items() if values}

    def span(self, given: Any, settings: Mapping[str, Any]) -> tuple[float, float]:
        """Return the range of opinions: the given one, or the default of the model or of its traits.

        Raises
        ------
        SpecError
            If it is not two numbers, the lower one first, or if it is infinite but the model's default is finite.
        """
        if self.states != "traits":
            return check_range(self.range if given is None else given, endless=not np.isfinite(self.range).all())
        if given is not None:
            raise SpecError(f"range of {self.name} is 0 to traits - 1; leave range out, and set traits instead")
        traits = self.declared["traits"]
        return 0.0, traits.array("traits", settings.get("traits", traits.default), 1) - 1.0

    def with_defaults(self, settings: Mapping[str, Any], span: tuple[float, float]) -> dict[str, Any]:
        """Return every parameter: as set, or its default, which scales with the range if it is in units of opinion."""
        width = (span[1] - span[0]) / (self.range[1] - self.range[0])
        scale = width if math.isfinite(width) else 1.0
        return {
            name: settings.get(name, each.default * scale if each.scaled else each.default)  # type: ignore[operator]
            for name, each in self.declared.items()
        }

    def told(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters that have an effect with these settings, for readers."""
        return {
            name: value
            for name, value in values.items()
            if np.size(value) and not (self.declared[name].idle and not np.any(value))
        }

    def arrays(self, values: Mapping[str, Any], n: int, span: tuple[float, float]) -> Any:
        """Convert all parameters for kernels and transitions: to numbers, or to arrays (n,).

        :func:`strict_bound` shifts bounds for distances, so kernels always compare with ``<``. Opinions are in the
        model's units.

        Raises
        ------
        SpecError
            If a value is out of range, not a number, or has another size.
        """
        found = {}
        for name, each in self.declared.items():
            found[name] = each.array(name, values[name], n)
            if each.reaches:
                inclusive = values["threshold"] == ("<=" if each.reaches == "threshold" else "<")
                found[name] = strict_bound(found[name], span, inclusive=inclusive)
            if each.opinions:
                found[name] = self._opinions(name, found[name], span)
        if np.any(found.get("media", 0)) and not found["media_opinions"].size:
            raise SpecError(f"media_opinions of {self.name} is empty; give at least one opinion, or set media to 0")
        return self.parameters(**found)

    def _opinions(self, name: str, given: np.ndarray, span: tuple[float, float]) -> np.ndarray:
        """Opinions of a parameter in the model's units, checked."""
        low, high = span
        valid = np.isin(given, span) if self.states == "two" else (given >= low) & (given <= high)
        if not valid.all():
            known = f"{low:g} or {high:g}" if self.states == "two" else f"opinions from {low:g} to {high:g}"
            raise SpecError(f"{name} must be {known}; got {given[~valid][0]:g}")
        return np.asarray(self.units.encode(given, span), dtype=np.float64)

    def prepared(self, p: Any) -> Any:
        """Return the parameters in the form that the kernel uses."""
        return p if self.prepare is None else self.prepare(p)
