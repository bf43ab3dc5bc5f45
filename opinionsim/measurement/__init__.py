"""Instruments, and the code through which every text becomes an estimate.

An instrument reads texts of certain kinds with a classifier. Classifiers that compute take texts from a queue that all
runs of a process share. Classifiers that ask a chat model do so in calls of the run whose texts they judge.
"""

from opinionsim.measurement._instruments import (
    STANCE as STANCE,
    Author as Author,
    Instrument as Instrument,
    Reading as Reading,
    Text as Text,
    check_abilities as check_abilities,
    instrument_id as instrument_id,
)
from opinionsim.measurement._live_coding import Coded as Coded, LiveCoding as LiveCoding
from opinionsim.measurement._measuring import (
    Measuring as Measuring,
    imported_rating as imported_rating,
    recorded_rating as recorded_rating,
)
from opinionsim.measurement._queues import Queues as Queues
