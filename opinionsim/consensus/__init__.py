"""Consensus finding: statements that a group of people can agree with.

All names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opinionsim.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.consensus._reward import RewardTraining as RewardTraining, train_reward as train_reward
    from opinionsim.consensus._statements import (
        StatementTraining as StatementTraining,
        cleaned_statement as cleaned_statement,
        statement_prompt as statement_prompt,
        train_statements as train_statements,
    )
    from opinionsim.consensus._training_data import (
        preference_pairs as preference_pairs,
        read_ratings as read_ratings,
        split_ratings as split_ratings,
        statement_examples as statement_examples,
    )

__getattr__, __dir__ = on_first_use(__name__)
