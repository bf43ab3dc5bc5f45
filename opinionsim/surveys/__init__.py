"""Survey personas: respondents of a survey, drawn by weight, as persons that agents play.

A mapping says which columns of a data file make a persona, and how; the file itself stays where the user has it. Also
here: personas drawn from given margins, design-based estimates of what weighted respondents say, and measures of how
well a model's answers stand in for theirs.
"""

from opinionsim.surveys._agreement import MEASURES, ItemAgreement, intervals, linear_coefficients
from opinionsim.surveys._estimates import estimates
from opinionsim.surveys._items import ALL_ITEMS, Subgroups, SurveyItem, items_of, subgroups_of
from opinionsim.surveys._mapping import SurveyColumn, SurveyMapping, SurveyOpinion, load_mapping
from opinionsim.surveys._margins import fit_margins, from_margins, with_each_value
from opinionsim.surveys._reading import TABLE_SUFFIXES, load_survey, unmapped_survey
from opinionsim.surveys._regression import fit_multinomial, predict_multinomial
from opinionsim.surveys._survey import Sample, Survey

__all__ = [
    "ALL_ITEMS",
    "MEASURES",
    "TABLE_SUFFIXES",
    "ItemAgreement",
    "Sample",
    "Subgroups",
    "Survey",
    "SurveyColumn",
    "SurveyItem",
    "SurveyMapping",
    "SurveyOpinion",
    "estimates",
    "fit_margins",
    "fit_multinomial",
    "from_margins",
    "intervals",
    "items_of",
    "linear_coefficients",
    "load_mapping",
    "load_survey",
    "predict_multinomial",
    "subgroups_of",
    "unmapped_survey",
    "with_each_value",
]
