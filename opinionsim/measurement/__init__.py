"""Instruments, and the one way from a text to an estimate.

An instrument reads texts of some kinds with a classifier. Classifiers that compute are fed from a queue that all runs
of a process share; those that ask a chat model ask in calls of the run whose texts they judge.
"""

from __future__ import annotations

from opinionsim.measurement._instruments import (
    SELF_REPORT,
    STANCE,
    Author,
    Estimate,
    Instrument,
    OpinionKey,
    Text,
    check_abilities,
    check_instruments,
    instrument_id,
)
from opinionsim.measurement._live import Coded, LiveCoding
from opinionsim.measurement._measuring import Measuring, recorded_rating
from opinionsim.measurement._queues import Queues

__all__ = [
    "SELF_REPORT",
    "STANCE",
    "Author",
    "Coded",
    "Estimate",
    "Instrument",
    "LiveCoding",
    "Measuring",
    "OpinionKey",
    "Queues",
    "Text",
    "check_abilities",
    "check_instruments",
    "instrument_id",
    "recorded_rating",
]
