"""Who takes part in the runs of an experiment, in one line."""

from __future__ import annotations

from opinionsim.specification._cells import Experiment
from opinionsim.specification._fields import ExperimentSpec
from opinionsim.specification._resources import Resources
from opinionsim.specification._survey import draws_personas, draws_respondents

#: Populations of a sweep that are told; the rest are counted.
_TOLD = 3


def taking_part(experiment: Experiment) -> str:
    """Who takes part in an experiment, and with what initial opinions.

    Parameters
    ----------
    experiment : Experiment
        The experiment; where its cells differ in their populations, the first few are told.

    Returns
    -------
    str
        One line, as in ``Taking part: the 8 personas of own.yaml, each once; initial opinions: as the file says``.
    """
    told = list(dict.fromkeys(_who(cell.spec, experiment.resources) for cell in experiment.cells))
    more = [f"one of {len(told) - _TOLD} more populations"] if len(told) > _TOLD else []
    return f"Taking part: {' | '.join([*told[:_TOLD], *more])}"


def _who(spec: ExperimentSpec, resources: Resources) -> str:
    population, size = spec.population, spec.size
    if spec.cast:
        return f"a cast of {size}"
    if population.continuous or not spec.interaction.role_play:
        return f"{size} agents who play nobody"
    if draws_respondents(spec):
        found = f"{size} respondents drawn from the survey"
    elif draws_personas(spec):
        found = f"{size} persons drawn from margins"
    else:
        personas = resources.personas(population)
        there = len(personas.personas)
        whose = population.personas if isinstance(population.personas, str) else personas.name
        found = f"the {there} personas of {whose}, each once"
        if size < there:
            found = f"{size} of the {there} personas of {whose}, drawn by chance"
        elif size > there:
            found = f"{size} agents who play the {there} personas of {whose}, some of these more than once"
    if not spec.has_topic:
        return found
    counts = population.distribution
    named = {"personas": "as the file says"}.get(counts, counts) if isinstance(counts, str) else "as counted"
    return f"{found}; initial opinions: {named}"
