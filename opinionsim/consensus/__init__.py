"""Consensus finding in Python: sessions, their tables, and analyses of ratings and voting rules.

A session is an experiment with the interaction ``consensus``; in a script, :class:`Mediation` creates one. Names are
loaded on first use.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.consensus._clusters import (
        BRITISH_GOVERNMENT as BRITISH_GOVERNMENT,
        Clusters as Clusters,
        cluster_questions as cluster_questions,
    )
    from opinionsim.consensus._consensus import ConsensusInteraction as ConsensusInteraction
    from opinionsim.consensus._figure import session_figure as session_figure
    from opinionsim.consensus._habermas import import_habermas as import_habermas
    from opinionsim.consensus._mediation import Mediation as Mediation, Session as Session
    from opinionsim.consensus._question_turns import read_question as read_question, same_question as same_question
    from opinionsim.consensus._questions import (
        EXCLUSIONS as EXCLUSIONS,
        generated_questions as generated_questions,
        read_curation as read_curation,
        write_curation as write_curation,
    )
    from opinionsim.consensus._report import session_text as session_text
    from opinionsim.consensus._selections import (
        Recorded as Recorded,
        rows_of as rows_of,
        selections as selections,
    )
    from opinionsim.consensus._session_acts import PREDICTED as PREDICTED
    from opinionsim.consensus._sessions import (
        asked as asked,
        other_rules as other_rules,
        ratings as ratings,
        sessions as sessions,
        statements as statements,
    )
    from opinionsim.consensus._splits import check_split as check_split, split_questions as split_questions
    from opinionsim.consensus._table import election_table as election_table
    from opinionsim.consensus.evaluation._choices import (
        advantage_statement as advantage_statement,
        picked as picked,
        prediction as prediction,
        sensitivity as sensitivity,
        welfare_advantage as welfare_advantage,
    )
    from opinionsim.consensus.evaluation._figures import (
        accuracy_data as accuracy_data,
        accuracy_figure as accuracy_figure,
        divisiveness_data as divisiveness_data,
        divisiveness_figure as divisiveness_figure,
        kappas_data as kappas_data,
        kappas_figure as kappas_figure,
        ratings_data as ratings_data,
        ratings_figure as ratings_figure,
        wins_data as wins_data,
        wins_figure as wins_figure,
    )
    from opinionsim.consensus.evaluation._measures import (
        candidate_table as candidate_table,
        estimate as estimate,
        exclusion as exclusion,
        pairs_in_order as pairs_in_order,
        policy_table as policy_table,
        reliability as reliability,
        reliable as reliable,
        weighted_kappa as weighted_kappa,
        win_rates as win_rates,
        write_ratings as write_ratings,
    )
    from opinionsim.consensus.training._examples import examples as examples
    from opinionsim.consensus.training._reward_training import (
        RewardTraining as RewardTraining,
        train_reward as train_reward,
    )
    from opinionsim.consensus.training._statements import (
        StatementTraining as StatementTraining,
        cleaned_statement as cleaned_statement,
        statement_prompt as statement_prompt,
        train_statements as train_statements,
    )
    from opinionsim.consensus.training._training_data import (
        preference_pairs as preference_pairs,
        read_ratings as read_ratings,
        split_ratings as split_ratings,
        statement_examples as statement_examples,
    )

__getattr__, __dir__ = on_first_use(__name__)
