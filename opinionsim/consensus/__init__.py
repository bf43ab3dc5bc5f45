"""Consensus finding in Python: sessions, their tables, evaluation, training and questions.

A session is an experiment whose interaction is ``consensus``; :class:`Mediation` writes one for a script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opinionsim.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.consensus._mediation import Mediation as Mediation, Session as Session
    from opinionsim.consensus._report import session_text as session_text
    from opinionsim.consensus._sessions import (
        other_rules as other_rules,
        ratings as ratings,
        sessions as sessions,
        statements as statements,
    )

__getattr__, __dir__ = on_first_use(__name__)
