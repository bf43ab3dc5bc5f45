"""Reading and checking of YAML specifications: fields, cells, identity of runs, and manifest."""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.specification._analysis_fields import (
        FRAMING as FRAMING,
        AnalysisSpec as AnalysisSpec,
        ChoicesSpec as ChoicesSpec,
        ContrastSpec as ContrastSpec,
        Level as Level,
        VariantSpec as VariantSpec,
        analysis_of as analysis_of,
    )
    from opinionsim.specification._cast import (
        Cast as Cast,
        cast_of as cast_of,
        cast_personas as cast_personas,
        cast_respondents as cast_respondents,
        conditions_of as conditions_of,
        known_participants as known_participants,
        participant_names as participant_names,
        reader_notes as reader_notes,
        seat_numbers as seat_numbers,
    )
    from opinionsim.specification._cells import (
        Cell as Cell,
        Experiment as Experiment,
        PlannedRun as PlannedRun,
        design_id as design_id,
        load_experiment as load_experiment,
        of_kind as of_kind,
        require_experiment as require_experiment,
        study_of as study_of,
    )
    from opinionsim.specification._ethics import (
        Consent as Consent,
        consent_of as consent_of,
        require_protocol as require_protocol,
    )
    from opinionsim.specification._event_fields import (
        changed_networks as changed_networks,
        event_labels as event_labels,
        events_of as events_of,
    )
    from opinionsim.specification._fields import ExperimentSpec as ExperimentSpec, json_schema as json_schema
    from opinionsim.specification._identity import setting_of as setting_of
    from opinionsim.specification._manifest import (
        manifest as manifest,
        recorded_manifest as recorded_manifest,
        versions as versions,
    )
    from opinionsim.specification._measurement import InstrumentSpec as InstrumentSpec
    from opinionsim.specification._member_fields import SeatSpec as SeatSpec
    from opinionsim.specification._model_fields import (
        EndpointSpec as EndpointSpec,
        ModelSpec as ModelSpec,
        RunEndpoint as RunEndpoint,
        agent_label as agent_label,
        endpoints as endpoints,
    )
    from opinionsim.specification._overrides import (
        Overrides as Overrides,
        apply_overrides as apply_overrides,
        axes_of as axes_of,
    )
    from opinionsim.specification._own_parts import (
        advice_on_changed_code as advice_on_changed_code,
        naming_own_part as naming_own_part,
        own_part_error as own_part_error,
        own_parts_code as own_parts_code,
        own_parts_manifest as own_parts_manifest,
        require_importable as require_importable,
        require_same_code as require_same_code,
        with_advice as with_advice,
    )
    from opinionsim.specification._prompt_wording import wording_of as wording_of
    from opinionsim.specification._resources import Resources as Resources
    from opinionsim.specification._survey_fields import uses_survey as uses_survey
    from opinionsim.specification._taking_part import taking_part as taking_part

__getattr__, __dir__ = on_first_use(__name__)
