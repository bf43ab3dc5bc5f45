"""The registry of scalar measures, from which documentation, plots, sweeps and the command line take them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opinionsim.errors import MeasurementError
from opinionsim.metrics import _clusters, _density, _dip, _groups, _moments, _network, _opinions, _polarization, _spread
from opinionsim.metrics._arrays import Range, opinion_array

__all__ = ["MEASURES", "Measure", "measure_opinions"]

_BRAMSON = ("Bramson et al. 2016", "10.1080/0022250X.2016.1147443")
_LORENZ = ("Lorenz et al. 2021", "10.1037/rev0000291")
_CHUANG = ("Chuang et al. 2023", "10.48550/arXiv.2311.09618")
_HARTIGAN = ("Hartigan & Hartigan 1985", "10.1214/aos/1176346577")
_MUSCO = ("Musco et al. 2018", "10.1145/3178876.3186103")
_NONE = ("", "")

#: Arguments that say what a measure needs beside opinions, and are the same for all.
_NEEDS = ("range", "network", "groups", "initial")


@dataclass(frozen=True, slots=True)
class Measure:
    """One number for a distribution of opinions.

    Attributes
    ----------
    name : str
        Its key in :data:`MEASURES` and the name of its function.
    function : callable
        Of opinions (..., N), and of what is needed and the options by keyword; gives (...).
    meaning : str
        What it tells, in one line.
    formula : str
        Its definition. x: opinions, n: agents that have one, c and M: middle and half the width of the range a to b.
    values : str
        What values it takes.
    source, doi : str
        Where the definition comes from; empty where it is elementary.
    pitfall : str
        What to beware of; empty where there is nothing particular.
    """

    name: str
    function: Callable[..., Any]
    meaning: str
    formula: str
    values: str
    source: str
    doi: str
    pitfall: str

    @property
    def needs(self) -> frozenset[str]:
        """What it cannot do without beside opinions: of range, network, initial."""
        parameters = inspect.signature(self.function).parameters
        return frozenset(name for name in _NEEDS if name in parameters and parameters[name].default is inspect._empty)

    @property
    def takes(self) -> frozenset[str]:
        """All arguments beside opinions, with `groups` where groups may be named."""
        return frozenset(inspect.signature(self.function).parameters) - {"opinions"}

    @property
    def options(self) -> dict[str, Any]:
        """Options and their defaults."""
        parameters = inspect.signature(self.function).parameters
        return {name: p.default for name, p in parameters.items() if name not in ("opinions", *_NEEDS)}


def _measure(
    function: Callable[..., Any], meaning: str, formula: str, values: str, source: tuple[str, str], pitfall: str = ""
) -> Measure:
    return Measure(function.__name__, function, meaning, formula, values, *source, pitfall)


_ENTRIES = (
    _measure(
        _opinions.bias,
        "mean opinion",
        "mean x",
        "a to b",
        _CHUANG,
        "not the `bias` of Lorenz et al., which is `relative_bias`",
    ),
    _measure(
        _opinions.diversity,
        "standard deviation",
        "(sum (x - mean x)^2 / (n - ddof))^(1/2)",
        "from 0",
        _CHUANG,
        "ddof is 0 as in the published tables; other sources divide by n - 1",
    ),
    _measure(_moments.median, "middle opinion", "median x", "a to b", _NONE, "jumps where opinions are few points"),
    _measure(
        _moments.skewness,
        "asymmetry",
        "m3 / m2^(3/2), central moments",
        "any",
        _NONE,
        "biased towards 0 in small samples; undefined at consensus",
    ),
    _measure(
        _moments.relative_bias,
        "distance of the mean from neutral",
        "abs(mean x - c) / M",
        "0 to 1",
        _LORENZ,
        "has no sign; its mean over runs is above 0 without any bias",
    ),
    _measure(
        _moments.relative_diversity,
        "standard deviation beside half the range",
        "sd / M, ddof 1",
        "from 0; 1 at equal poles for large n",
        _LORENZ,
        "ddof is 1 here, 0 in `diversity`",
    ),
    _measure(
        _density.fragmentation,
        "spread times ups and downs of the density",
        "sd / (4M) sum abs(f(g + step) - f(g)), f a Gaussian density on x scaled to M = 3.5",
        "0 to about 1",
        _LORENZ,
        "the kernel of a group at an end is cut in half and only one of its flanks counts; depends on the bandwidth "
        "as a share of the range; integer ratings look fragmented whatever people think",
    ),
    _measure(_moments.extremeness, "mean distance from neutral", "mean abs(x - c) / M", "0 to 1", _NONE),
    _measure(
        _moments.extreme_share,
        "share near an end",
        "share with abs(x - c) > 0.9 M",
        "0 to 1",
        _NONE,
        "on a scale of few points it is the share at the end points",
    ),
    _measure(
        _spread.spread,
        "largest less smallest opinion",
        "max x - min x",
        "0 to b - a",
        _BRAMSON,
        "set by two agents; grows with n",
    ),
    _measure(
        _spread.dispersion,
        "mean absolute deviation",
        "2 mean abs(x - mean x) / (b - a)",
        "0 to 1",
        _BRAMSON,
        "does not tell two camps from a wide single one",
    ),
    _measure(
        _spread.coverage,
        "share of the range that is occupied",
        "union of intervals of width (b - a)/n around opinions, cut at the ends, over b - a",
        "0 to 1",
        _BRAMSON,
        "compare equal n only; ratings on k points cover at most about k/n",
    ),
    _measure(
        _spread.regionalization,
        "empty stretches between opinions",
        "number of gaps wider than (b - a)/n",
        "0, 1, 2, ...",
        _BRAMSON,
        "compare equal n, or state `gap`",
    ),
    _measure(
        _spread.mean_distance,
        "mean distance of two agents",
        "mean abs(xi - xj) over pairs i < j",
        "0 to b - a",
        _NONE,
        "does not tell two camps from a wide single one",
    ),
    _measure(
        _polarization.esteban_ray,
        "camps that are large and far apart",
        "2^(1+alpha) sum p_i^(1+alpha) p_j abs(y_i - y_j) over bins, y from 0 to 1",
        "from 0; 1 at equal poles",
        ("Esteban & Ray 1994", "10.2307/2951734"),
        "depends on the bins: report their number; use k for a scale of k points",
    ),
    _measure(
        _polarization.duclos_esteban_ray,
        "the same for continuous opinions",
        "mean over i of f(y_i)^alpha mean over j of abs(y_i - y_j), y from 0 to 1",
        "from 0",
        ("Duclos et al. 2004", "10.1111/j.1468-0262.2004.00552.x"),
        "point masses make it as large as the bandwidth allows; density beyond the ends is lost",
    ),
    _measure(
        _polarization.bimodality,
        "bimodality coefficient",
        "(G1^2 + 1) / (G2 + 3(n-1)^2/((n-2)(n-3))), sample skewness and excess kurtosis",
        "0 to 1; uniform 5/9",
        ("Pfister et al. 2013", "10.3389/fpsyg.2013.00700"),
        "unreliable on few point masses, as integer ratings are, and with skew: look at `dip` too",
    ),
    _measure(
        _dip.dip,
        "distance from every unimodal distribution",
        "min over unimodal G of max abs(F - G)",
        "0 to 1/4",
        _HARTIGAN,
        "its p-value is for continuous opinions; ratings on few points are many modes to it",
    ),
    _measure(
        _polarization.agreement,
        "agreement on an ordered scale",
        "mean over layers of the histogram of U (1 - (S - 1)/(K - 1))",
        "-1 equal poles, 0 uniform, 1 one bin",
        ("van der Eijk 2001", "10.1023/A:1010374114305"),
        "ordinal: which of two neighbouring bins is full changes it in jumps; bins must be the points of the scale",
    ),
    _measure(
        _polarization.opinion_polarization_index,
        "polarization as experts rate it",
        "(2.14 n2 n4 + 2.70 (n1 n4 + n2 n5) + 3.96 n1 n5) / (0.0099 n^2)",
        "0 to 100",
        ("Koudenburg et al. 2021", "10.3389/fpsyg.2021.738258"),
        "made for scales of five points; the neutral category counts only by its absence",
    ),
    _measure(
        _clusters.clusters,
        "clusters of opinion, however small",
        "1 + number of gaps between neighbouring opinions > delta",
        "1 to n",
        _NONE,
        "state delta; single stragglers count as a cluster each",
    ),
    _measure(
        _clusters.effective_clusters,
        "clusters weighted by size",
        "(sum c)^2 / sum c^2, cluster sizes c",
        "1 to n",
        ("Laakso & Taagepera 1979", "10.1177/001041407901200101"),
        "state delta",
    ),
    _measure(_clusters.largest_cluster, "share of the largest cluster", "max c / n", "1/n to 1", _NONE, "state delta"),
    _measure(
        _groups.group_count,
        "groups (community fracturing)",
        "1 + number of valleys in the density, or groups named",
        "1, 2, ...",
        _BRAMSON,
        "depends on bandwidth and depth of the density's valleys (`valley_labels`)",
    ),
    _measure(
        _groups.distinctness,
        "how little groups overlap",
        "1 - sum over bins of min(p_g, p_h), mean over pairs of groups",
        "0 to 1",
        _BRAMSON,
        "near 1 by construction where groups come from the opinions; our normalisation",
    ),
    _measure(
        _groups.group_divergence,
        "distance of group means",
        "abs(mean_g - mean_h) / (b - a), mean over pairs of groups",
        "0 to 1",
        _BRAMSON,
        "undefined for one group; our normalisation",
    ),
    _measure(
        _groups.group_consensus,
        "unity within groups",
        "1 - 2 mean abs(x - mean_g) / (b - a), mean over groups",
        "0 to 1",
        _BRAMSON,
        "large by construction where groups come from the opinions; our normalisation",
    ),
    _measure(
        _groups.size_parity,
        "evenness of group sizes",
        "-sum s ln s / ln G, shares s of G groups",
        "0 to 1",
        _BRAMSON,
        "undefined for one group; our normalisation",
    ),
    _measure(
        _network.neighbour_correlation,
        "whether agents hear their like",
        "Pearson correlation of x with the mean x of those heard",
        "-1 to 1",
        ("Baumann et al. 2020", "10.1103/PhysRevLett.124.048301"),
        "give the permutation null; below 0 by chance in dense networks, -1 in the complete one",
    ),
    _measure(
        _network.assortativity,
        "likeness over ties",
        "Pearson correlation of x at the two ends of ties",
        "-1 to 1",
        ("Newman 2003", "10.1103/PhysRevE.67.026126"),
        "give the permutation null; agents count by their ties",
    ),
    _measure(
        _network.same_side_share,
        "ties within a side",
        "share of ties with both ends above, or both below, c",
        "0 to 1",
        _NONE,
        "give the permutation null: a lopsided population has many such ties; neutral agents are left out",
    ),
    _measure(
        _network.ei_index,
        "ties between groups less ties within",
        "(E - I) / (E + I), sides of c or groups named",
        "-1 to 1",
        ("Krackhardt & Stern 1988", "10.2307/2786835"),
        "give the permutation null: without preference it depends on group sizes",
    ),
    _measure(
        _network.active_link_density,
        "ties between agents that differ",
        "share of ties with abs(xi - xj) > tolerance",
        "0 to 1",
        _NONE,
        "state the tolerance for continuous opinions",
    ),
    _measure(
        _network.disagreement,
        "squared differences over ties",
        "sum over pairs of w (xi - xj)^2",
        "from 0",
        _MUSCO,
        "grows with the number of ties",
    ),
    _measure(
        _network.polarization,
        "squared deviations from the mean",
        "sum (x - mean x)^2",
        "from 0",
        _MUSCO,
        "grows with n; a spread, not a sign of camps",
    ),
    _measure(
        _network.internal_conflict,
        "squared distances from agents' own initial opinions",
        "sum (x - x0)^2",
        "from 0",
        ("Chen et al. 2018", "10.1145/3219819.3220074"),
        "grows with n",
    ),
)

#: Every scalar measure by name.
MEASURES: Mapping[str, Measure] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def _chosen(names: str | Iterable[str] | None, given: Mapping[str, Any]) -> list[Measure]:
    """Measures named, or all that what is given suffices for."""
    if names is None:
        return [measure for measure in MEASURES.values() if measure.needs <= given.keys()]
    wanted = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in wanted if name not in MEASURES]
    if unknown:
        raise MeasurementError(f"there is no measure {unknown[0]!r}; valid are {', '.join(MEASURES)}")
    return [MEASURES[name] for name in dict.fromkeys(wanted)]


def arguments(
    names: str | Iterable[str] | None, given: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Keyword arguments of each measure chosen, from what is given to all and options for some.

    Raises
    ------
    MeasurementError
        If a measure is unknown or lacks what it needs, or an option is of none of them.
    """
    chosen = _chosen(names, given)
    own = {name: value for name, value in options.items() if name in MEASURES}
    shared = {name: value for name, value in options.items() if name not in MEASURES}
    found = {}
    for measure in chosen:
        lacking = sorted(measure.needs - given.keys() - shared.keys())
        if lacking:
            raise MeasurementError(f"{measure.name} needs {' and '.join(lacking)}")
        mine = own.pop(measure.name, {})
        if not isinstance(mine, Mapping) or not mine.keys() <= measure.options.keys():
            valid = ", ".join(measure.options) or "none"
            raise MeasurementError(f"options of {measure.name} are a mapping of {valid}; got {mine!r}")
        every = {name: value for name, value in {**given, **shared}.items() if name in measure.takes}
        found[measure.name] = {**every, **mine}
    taken = {name for measure in chosen for name in measure.takes}
    stray = [*own, *(name for name in shared if name not in taken)]
    if stray:
        raise MeasurementError(f"option {stray[0]!r} is of none of the measures {', '.join(found)}")
    return found


def measure_opinions(
    opinions: ArrayLike,
    names: str | Iterable[str] | None = None,
    *,
    range: Range | None = None,
    network: Any = None,
    groups: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    **options: Any,
) -> dict[str, np.ndarray]:
    """Several measures of the same opinions.

    Parameters
    ----------
    opinions : array_like (..., N)
        One opinion an agent; NaN where there is none.
    names : str or iterable of str, optional
        Keys of :data:`MEASURES`; default all for which `range`, `network` and `initial` suffice.
    range : (float, float), optional
        Ends of the opinion scale.
    network : Network or tuple of arrays, optional
        Who hears whom.
    groups : array_like (N,) or (..., N), optional
        Name of each agent's group, for measures that compare groups.
    initial : array_like (N,) or (..., N), optional
        Initial opinions.
    **options
        An option goes to every measure that takes it; one measure's own are a mapping under its name, as in
        ``esteban_ray={"alpha": 1.0}``.

    Returns
    -------
    dict of str to ndarray (...)
        In the order of `names`.

    Raises
    ------
    MeasurementError
        If a measure is unknown or lacks what it needs, an option is of none, or the opinions are not valid.
    """
    values = opinion_array(opinions)
    passed = {"range": range, "network": network, "groups": groups, "initial": initial}
    given = {name: value for name, value in passed.items() if value is not None}
    return {
        name: np.asarray(MEASURES[name].function(values, **keywords))
        for name, keywords in arguments(names, given, options).items()
    }
