"""Who takes part in the runs of an experiment, in one line."""

from __future__ import annotations

from opinionsim.specification._cells import Experiment
from opinionsim.specification._fields import ExperimentSpec
from opinionsim.specification._resources import Resources
from opinionsim.specification._survey_fields import draws_personas, draws_respondents

#: Populations of a sweep that are told.
_TOLD = 3
#: What is said of initial opinions that stand in the file of personas, by their assignment.
_DEALT = {
    "fixed": "as the file says",
    "random": "those of the file, dealt out at random in each replicate",
    "latin-square": "those of the file, rotated over replicates",
}


def taking_part(experiment: Experiment) -> str:
    """Describe who takes part in an experiment, and with what initial opinions.

    Parameters
    ----------
    experiment : Experiment
        The experiment; if its cells differ in their populations, the line lists the first few.

    Returns
    -------
    str
        One line, as in ``Taking part: the 8 personas of own.yaml, each once; initial opinions: as the file says``.
    """
    told = list(dict.fromkeys(_who(cell.spec, experiment.resources) for cell in experiment.cells))
    return f"Taking part: {' | '.join(told[:_TOLD])}{' | and others' if len(told) > _TOLD else ''}"


def _who(spec: ExperimentSpec, resources: Resources) -> str:
    population, size = spec.population, spec.size
    if spec.cast:
        return f"a cast of {size}"
    if spec.interaction.recorded:
        return "people on record"
    if spec.interaction.stands_in:
        return f"agents who play recorded people, {size} per run; initial opinions: those of the people"
    if population.continuous or not spec.interaction.role_play:
        return f"{size} agents who play nobody"
    if draws_personas(spec):
        found = f"{size} personas drawn from {'the survey' if draws_respondents(spec) else 'margins'}"
    else:
        personas = resources.personas(population)
        there, whose = len(personas.personas), population.personas
        them = f"the {there} personas of {whose if isinstance(whose, str) else personas.name}"
        found = f"{size} of {them}, drawn at random" if size < there else f"{them}, each once"
        if size > there:
            found = f"{size} agents who play {them}, some more than once"
    given = population.initial_opinions if isinstance(population.initial_opinions, str) else "by counts"
    opinions = f"; initial opinions: {_DEALT[population.assignment] if given == 'personas' else given}"
    return f"{found}{opinions if spec.has_topic else ''}"
