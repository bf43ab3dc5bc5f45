"""The survey from which agents are drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opinionsim.errors import SurveyError
from opinionsim.foundation.streams import stream
from opinionsim.personas import Persona
from opinionsim.surveys import Survey, SurveyMapping, load_survey

#: The survey in use, and the random stream of the agents drawn from it; empty where none is named.
_USED: list[tuple[Survey, np.random.Generator]] = []


def use_survey(
    file: str | Path | None, mapping: SurveyMapping | str | Path = "anes2024", seed: int = 0
) -> Survey | None:
    """Name the survey from which agents are drawn, once for the process.

    Parameters
    ----------
    file : str, Path or None
        The survey, as for :func:`opinionsim.surveys.load_survey`; None removes the current one.
    mapping : str, Path or SurveyMapping
        How its columns become personas; default the mapping of the ANES 2024 pilot study.
    seed : int
        Seed of the draws, >= 0. Agents are drawn by weight from all matching respondents in the order in which the
        script creates them, so the same script gets the same agents.

    Returns
    -------
    Survey or None
        The survey, with its variables and values.

    Raises
    ------
    SurveyError
        If file or mapping is not valid.
    """
    survey = None if file is None else load_survey(file, mapping)
    _USED[:] = [] if survey is None else [(survey, stream(seed, "survey", 0))]
    return survey


def drawn_persona(argument: str, ideology: str | None, query: str | None) -> Persona:
    """Draw a person by weight from the survey in use.

    Parameters
    ----------
    argument : str
        The argument that needs the person, named in errors.
    ideology : str or None
        A group of the survey's mapping; the mapping of the ANES 2024 pilot study has the five groups of Plurals.
    query : str or None
        Query; None for all respondents, unless there is an ideology.

    Raises
    ------
    SurveyError
        If no survey is in use, there is no such group, or the query is not valid or matches no respondent.
    """
    if not _USED:
        raise SurveyError(
            f"{argument} draws a person from a survey, but no survey is set; call "
            "opinionsim.deliberation.use_survey(FILE, mapping='anes2024') first"
        )
    survey, rng = _USED[0]
    asked = survey.group(ideology) if ideology is not None else query
    found: Persona = survey.draw(1, rng, asked).personas.personas[0]
    return found
