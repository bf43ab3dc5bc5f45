"""Consensus finding: statements that a group of people can agree with.

All names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opinionsim.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.consensus._clusters import (
        BRITISH_GOVERNMENT as BRITISH_GOVERNMENT,
        Clusters as Clusters,
        cluster_questions as cluster_questions,
    )
    from opinionsim.consensus._habermas import HabermasData as HabermasData, import_habermas as import_habermas
    from opinionsim.consensus._questions import (
        EXCLUSIONS as EXCLUSIONS,
        generated_questions as generated_questions,
        read_curation as read_curation,
        write_curation as write_curation,
    )
    from opinionsim.consensus._splits import check_split as check_split, split_questions as split_questions

__getattr__, __dir__ = on_first_use(__name__)
