"""Contract suites and tools for testing extensions. Inherit from a suite and supply a fixture to check the contract.

Names are loaded when first used, because the suites need pytest and the clock does not.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.testing._classifiers import ClassifierContract as ClassifierContract
    from opinionsim.testing._clock import VirtualClockLoop as VirtualClockLoop, run_virtual as run_virtual
    from opinionsim.testing._prompts import PromptPackContract as PromptPackContract
    from opinionsim.testing._schedules import ScheduleContract as ScheduleContract

__getattr__, __dir__ = on_first_use(__name__)
