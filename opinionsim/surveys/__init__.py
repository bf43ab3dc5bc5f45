"""Survey personas: respondents of a survey, drawn by weight, whom agents play.

A mapping defines which columns of a data file make a persona, and how; the data file stays where you keep it. The
package also draws personas from given margins and computes design-based estimates for weighted respondents.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.surveys._items import (
        ALL_ITEMS as ALL_ITEMS,
        Subgroups as Subgroups,
        SurveyItem as SurveyItem,
        items_of as items_of,
        subgroups_of as subgroups_of,
    )
    from opinionsim.surveys._margins import (
        fit_margins as fit_margins,
        from_margins as from_margins,
        with_each_value as with_each_value,
    )
    from opinionsim.surveys._respondents import Respondents as Respondents, Survey as Survey
    from opinionsim.surveys._survey_files import (
        TABLE_SUFFIXES as TABLE_SUFFIXES,
        load_survey as load_survey,
        unmapped_survey as unmapped_survey,
    )
    from opinionsim.surveys._survey_mapping import (
        SurveyColumn as SurveyColumn,
        SurveyMapping as SurveyMapping,
        load_mapping as load_mapping,
    )
    from opinionsim.surveys._weighted_estimates import estimates as estimates

__getattr__, __dir__ = on_first_use(__name__)
