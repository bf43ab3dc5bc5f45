"""Elections: rules that turn ballots (ranks or scores of candidates) into a winner and a social ranking.

All functions work on arrays. Give a rule as a name, a mapping or a :class:`Rule`; :data:`RULES` lists the rules and
their requirements.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.consensus.voting._elections import (
        Election as Election,
        compare_rules as compare_rules,
        elect as elect,
    )
    from opinionsim.consensus.voting._rules import (
        RULES as RULES,
        Rule as Rule,
        power_mean as power_mean,
        widest_paths as widest_paths,
    )

__getattr__, __dir__ = on_first_use(__name__)
