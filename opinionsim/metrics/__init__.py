"""Metrics of opinions and texts, on arrays and on the tidy frames of a store."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.metrics._bands import (
        ANY as ANY,
        LEAST_RUNS as LEAST_RUNS,
        limits_of as limits_of,
        run_band as run_band,
        say_band as say_band,
    )
    from opinionsim.metrics._between_groups import (
        distinctness as distinctness,
        group_consensus as group_consensus,
        group_count as group_count,
        group_divergence as group_divergence,
        size_parity as size_parity,
    )
    from opinionsim.metrics._classes import (
        CLASSES as CLASSES,
        class_transitions as class_transitions,
        qualitative_class as qualitative_class,
    )
    from opinionsim.metrics._communities import communities as communities, modularity as modularity
    from opinionsim.metrics._conditions import (
        check_conditions as check_conditions,
        condition_axes as condition_axes,
        condition_means as condition_means,
        condition_metrics as condition_metrics,
        condition_rows as condition_rows,
        in_order as in_order,
        named_levels as named_levels,
        none_complete as none_complete,
        order_levels as order_levels,
        usable_runs as usable_runs,
    )
    from opinionsim.metrics._controversy import random_walk_controversy as random_walk_controversy
    from opinionsim.metrics._convergence import (
        consensus_time as consensus_time,
        convergence_time as convergence_time,
        exit_probability as exit_probability,
        largest_change as largest_change,
    )
    from opinionsim.metrics._dip import dip as dip, dip_p_value as dip_p_value
    from opinionsim.metrics._evidence import (
        BELIEF as BELIEF,
        BY_MODELS as BY_MODELS,
        EVIDENCE as EVIDENCE,
        NOT_SET as NOT_SET,
        NOT_VALIDATED as NOT_VALIDATED,
        SELF_REPORT as SELF_REPORT,
        TO_MEASURE as TO_MEASURE,
        WITHOUT_FINDING as WITHOUT_FINDING,
        answered_otherwise as answered_otherwise,
        chosen_kind as chosen_kind,
        evidence_of as evidence_of,
        evidence_statement as evidence_statement,
        instrument_validation as instrument_validation,
        kinds_in_order as kinds_in_order,
        named_models as named_models,
        played_by as played_by,
        validation_statement as validation_statement,
    )
    from opinionsim.metrics._in_words import (
        axis_name as axis_name,
        check_columns as check_columns,
        describe as describe,
        level_name as level_name,
        name_instrument as name_instrument,
        named_conditions as named_conditions,
        outdated as outdated,
        provenance as provenance,
        topic_titles as topic_titles,
    )
    from opinionsim.metrics._kernel_density import (
        density as density,
        fragmentation as fragmentation,
        valley_labels as valley_labels,
    )
    from opinionsim.metrics._lexical import (
        LEXICAL as LEXICAL,
        diversity_component as diversity_component,
        hdd as hdd,
        lexical_diversity as lexical_diversity,
        lexical_frame as lexical_frame,
        tokenise as tokenise,
        type_token_ratio as type_token_ratio,
    )
    from opinionsim.metrics._metric_parts import (
        METRICS as METRICS,
        Metric as Metric,
        compute_metrics as compute_metrics,
        find_metric as find_metric,
        takes_delta as takes_delta,
    )
    from opinionsim.metrics._missing import (
        LEAST_MEASURED as LEAST_MEASURED,
        SIDES as SIDES,
        exposure as exposure,
        readings as readings,
        replies as replies,
    )
    from opinionsim.metrics._moments import (
        extreme_share as extreme_share,
        extremeness as extremeness,
        median as median,
        relative_bias as relative_bias,
        relative_diversity as relative_diversity,
        skewness as skewness,
    )
    from opinionsim.metrics._named import (
        check_metrics as check_metrics,
        named_metrics as named_metrics,
        variable_means as variable_means,
    )
    from opinionsim.metrics._on_networks import (
        active_link_density as active_link_density,
        assortativity as assortativity,
        disagreement as disagreement,
        ei_index as ei_index,
        internal_conflict as internal_conflict,
        neighbour_correlation as neighbour_correlation,
        polarization as polarization,
        same_side_share as same_side_share,
    )
    from opinionsim.metrics._opinion_clusters import (
        clusters as clusters,
        effective_clusters as effective_clusters,
        largest_cluster as largest_cluster,
    )
    from opinionsim.metrics._opinion_frames import opinion_metrics as opinion_metrics
    from opinionsim.metrics._opinion_rows import (
        STANCE as STANCE,
        between_points as between_points,
        by_participants as by_participants,
        cut as cut,
        scale_of as scale_of,
        scale_of_all as scale_of_all,
        stance_rows as stance_rows,
    )
    from opinionsim.metrics._opinions import (
        Distribution as Distribution,
        bias as bias,
        distribution as distribution,
        diversity as diversity,
    )
    from opinionsim.metrics._polarization import (
        agreement as agreement,
        bimodality as bimodality,
        duclos_esteban_ray as duclos_esteban_ray,
        esteban_ray as esteban_ray,
        opinion_polarization_index as opinion_polarization_index,
    )
    from opinionsim.metrics._regions import (
        components as components,
        largest_component as largest_component,
        largest_region as largest_region,
        partial_overlap as partial_overlap,
        regions as regions,
    )
    from opinionsim.metrics._run_metrics import (
        final_opinions as final_opinions,
        run_metrics as run_metrics,
        step_metrics as step_metrics,
        trajectories as trajectories,
    )
    from opinionsim.metrics._simulated_runs import SimulatedRuns as SimulatedRuns, setting_text as setting_text
    from opinionsim.metrics._spread import (
        coverage as coverage,
        dispersion as dispersion,
        entropy as entropy,
        mean_distance as mean_distance,
        regionalization as regionalization,
        spread as spread,
    )
    from opinionsim.metrics._sycophancy import sycophancy as sycophancy
    from opinionsim.metrics._uncertainty import (
        permutation_null as permutation_null,
        permutation_test as permutation_test,
        spell_mean as spell_mean,
    )
    from opinionsim.metrics._wordings import one_wording as one_wording, wording_statement as wording_statement

__getattr__, __dir__ = on_first_use(__name__)
