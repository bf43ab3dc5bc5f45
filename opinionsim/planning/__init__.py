"""Forecast and preview of an experiment before any call."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.planning._cards import card_file as card_file, card_of as card_of
    from opinionsim.planning._forecast import (
        Forecast as Forecast,
        spell_money as spell_money,
        spell_seconds as spell_seconds,
    )
    from opinionsim.planning._plan import RunCounts as RunCounts, counts_by_run as counts_by_run, plan as plan
    from opinionsim.planning._preview import preview as preview

__getattr__, __dir__ = on_first_use(__name__)
