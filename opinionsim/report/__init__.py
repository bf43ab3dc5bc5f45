"""Write a study as one page, and as an archive that others can check."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.report._archive import write_archive as write_archive
    from opinionsim.report._codebook import codebook as codebook, plain_names as plain_names
    from opinionsim.report._describing import parts_of_runs as parts_of_runs
    from opinionsim.report._fitting_figures import shown_as as shown_as
    from opinionsim.report._frame_files import write_export as write_export
    from opinionsim.report._freeze import (
        History as History,
        freeze as freeze,
        history as history,
        preregistration as preregistration,
    )
    from opinionsim.report._page import (
        by_section as by_section,
        is_page as is_page,
        put_page as put_page,
        write_page as write_page,
    )
    from opinionsim.report._page_templates import spelled as spelled
    from opinionsim.report._released import released as released
    from opinionsim.report._study import Study as Study, left_out as left_out, study as study
    from opinionsim.report._study_tables import tables_of as tables_of
    from opinionsim.report._study_words import (
        parameters as parameters,
        statements as statements,
        usable as usable,
        words_of_runs as words_of_runs,
    )
    from opinionsim.report._verify import Verification as Verification, verify as verify

__getattr__, __dir__ = on_first_use(__name__)
