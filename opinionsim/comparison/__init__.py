"""Compare agents with equations fitted to their behaviour, and with people in the same situation.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.comparison._comparison import compare as compare
    from opinionsim.comparison._condition_figures import people_figure as people_figure
    from opinionsim.comparison._decompose import decompose as decompose
    from opinionsim.comparison._findings import Comparison as Comparison
    from opinionsim.comparison._updates import events as events, response_curve as response_curve
    from opinionsim.comparison.people._answer_agreement import (
        MEASURES as MEASURES,
        ItemAgreement as ItemAgreement,
        fit_multinomial as fit_multinomial,
        intervals as intervals,
        linear_coefficients as linear_coefficients,
        predict_multinomial as predict_multinomial,
    )
    from opinionsim.comparison.people._debate_folders import read_debate as read_debate
    from opinionsim.comparison.people._panel import import_panel as import_panel
    from opinionsim.comparison.people._panel_mapping import (
        PanelMapping as PanelMapping,
        load_panel_mapping as load_panel_mapping,
    )
    from opinionsim.comparison.people._people import people_table as people_table, updates as updates
    from opinionsim.comparison.people._survey_validation import (
        SurveyValidation as SurveyValidation,
        read_validation as read_validation,
        validation_experiment as validation_experiment,
    )
    from opinionsim.comparison.people._twins import twins_experiment as twins_experiment

__getattr__, __dir__ = on_first_use(__name__)
