"""Opinion dynamics with language-model agents, beside classic agent-based models.

Names are loaded when they are first used: importing the package itself imports nothing heavier than
the standard library.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim import (
        classic as classic,
        deliberation as deliberation,
        metrics as metrics,
        networks as networks,
        plots as plots,
        report as report,
    )
    from opinionsim.classifiers import load_classifier as load_classifier
    from opinionsim.comparison import compare as compare, import_panel as import_panel
    from opinionsim.errors import (
        BudgetExceeded as BudgetExceeded,
        MeasurementError as MeasurementError,
        ModelCallError as ModelCallError,
        OpinionSimError as OpinionSimError,
        ScheduleError as ScheduleError,
        SpecError as SpecError,
        StoreError as StoreError,
        SurveyError as SurveyError,
    )
    from opinionsim.llm import GivenReplies as GivenReplies, load_chat_model as load_chat_model
    from opinionsim.model import OpinionModel as OpinionModel, PersonaAgent as PersonaAgent
    from opinionsim.opinions import OpinionScale as OpinionScale
    from opinionsim.personas import Persona as Persona, Population as Population
    from opinionsim.planning import plan as plan
    from opinionsim.registry import part as part
    from opinionsim.running import run as run
    from opinionsim.specification import load_experiment as load_experiment
    from opinionsim.store import Results as Results, load as load
    from opinionsim.topics import Claim as Claim, Topic as Topic
    from opinionsim.watching import follow as follow, transcript as transcript

__version__ = "0.2.0"
__getattr__, __dir__ = on_first_use(__name__)
