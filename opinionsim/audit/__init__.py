"""Audits: check how well an instrument reads texts against labels from people, and correct numbers by these labels.

An audit takes these steps: :func:`plan` computes how many labels you need, :func:`draw` samples texts, and
:func:`write_files` writes them for coders. :func:`read_files` and :func:`keep` read and store the labels.
:func:`score_tables` shows the errors of the instrument, and :func:`correction_tables` gives raw and corrected numbers
side by side. :func:`instrument_tables` compares all readings of the same texts, and :func:`model_card` describes how a
chat model acts as an agent.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.audit._correct import bias_frames as bias_frames
    from opinionsim.audit._corrected_tables import correction_tables as correction_tables
    from opinionsim.audit._diversity import correct_diversity as correct_diversity
    from opinionsim.audit._label_agreement import (
        coefficients as coefficients,
        cohen_kappa as cohen_kappa,
        confusion as confusion,
        krippendorff_alpha as krippendorff_alpha,
    )
    from opinionsim.audit._labels import (
        asked as asked,
        combined as combined,
        keep as keep,
        labels_of as labels_of,
        read_files as read_files,
    )
    from opinionsim.audit._labels_needed import half_width as half_width, plan as plan
    from opinionsim.audit._model_card import card_table as card_table, model_card as model_card
    from opinionsim.audit._readings_compared import instrument_tables as instrument_tables
    from opinionsim.audit._sample import (
        Sample as Sample,
        draw as draw,
        sample_of as sample_of,
        write_files as write_files,
    )
    from opinionsim.audit._score import (
        keep_findings as keep_findings,
        misreadings as misreadings,
        score_tables as score_tables,
    )

__getattr__, __dir__ = on_first_use(__name__)
