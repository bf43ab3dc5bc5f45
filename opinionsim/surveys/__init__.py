"""Survey personas: respondents of a survey, drawn by weight, as persons that agents play.

A mapping says which columns of a data file make a persona, and how; the file itself stays where the user has it. Also
here: personas drawn from given margins, and design-based estimates of what weighted respondents say.
"""

from opinionsim.surveys._estimates import estimates
from opinionsim.surveys._mapping import SurveyColumn, SurveyMapping, SurveyOpinion, load_mapping
from opinionsim.surveys._margins import fit_margins, from_margins, with_each_value
from opinionsim.surveys._reading import TABLE_SUFFIXES, load_survey, unmapped_survey
from opinionsim.surveys._survey import Sample, Survey

__all__ = [
    "TABLE_SUFFIXES",
    "Sample",
    "Survey",
    "SurveyColumn",
    "SurveyMapping",
    "SurveyOpinion",
    "estimates",
    "fit_margins",
    "from_margins",
    "load_mapping",
    "load_survey",
    "unmapped_survey",
    "with_each_value",
]
