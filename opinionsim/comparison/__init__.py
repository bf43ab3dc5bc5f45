"""Compare agents with equations fitted to their behaviour, and with people in the same situation."""

from __future__ import annotations

from opinionsim.comparison._answer_agreement import (
    MEASURES as MEASURES,
    ItemAgreement as ItemAgreement,
    fit_multinomial as fit_multinomial,
    intervals as intervals,
    linear_coefficients as linear_coefficients,
    predict_multinomial as predict_multinomial,
)
from opinionsim.comparison._comparison import compare as compare
from opinionsim.comparison._condition_figures import people_figure as people_figure
from opinionsim.comparison._debate_folders import read_debate as read_debate
from opinionsim.comparison._decompose import decompose as decompose
from opinionsim.comparison._findings import Comparison as Comparison
from opinionsim.comparison._panel import import_panel as import_panel
from opinionsim.comparison._panel_mapping import PanelMapping as PanelMapping, load_panel_mapping as load_panel_mapping
from opinionsim.comparison._people import people_table as people_table, updates as updates
from opinionsim.comparison._survey_validation import (
    SurveyValidation as SurveyValidation,
    read_validation as read_validation,
    validation_experiment as validation_experiment,
)
from opinionsim.comparison._twins import twins_experiment as twins_experiment
from opinionsim.comparison._updates import events as events, response_curve as response_curve
