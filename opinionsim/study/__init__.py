"""Kinds of study: how a specification becomes work, and what is shown of its results."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.study._kind_of_study import (
        StudyKind as StudyKind,
        design_of as design_of,
        stored_units as stored_units,
    )

__getattr__, __dir__ = on_first_use(__name__)
