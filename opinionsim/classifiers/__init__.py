"""Classifiers, which code texts on a scale.

Each classifier is loaded on first use.
"""

from typing import TYPE_CHECKING

from opinionsim.foundation.lazy import on_first_use

if TYPE_CHECKING:
    from opinionsim.classifiers._base import (
        AskingClassifier as AskingClassifier,
        Classifier as Classifier,
        Context as Context,
        Item as Item,
        PairClassifier as PairClassifier,
        asks as asks,
        asks_author as asks_author,
        items_of as items_of,
    )
    from opinionsim.classifiers._calibration import (
        Calibration as Calibration,
        fit_calibration as fit_calibration,
        load_calibration as load_calibration,
    )
    from opinionsim.classifiers._chat import ChatClassifier as ChatClassifier
    from opinionsim.classifiers._classifier_parts import load_classifier as load_classifier
    from opinionsim.classifiers._closed import (
        is_abstention as is_abstention,
        parse_closed as parse_closed,
        read_closed as read_closed,
    )
    from opinionsim.classifiers._conduct import CONDUCT as CONDUCT, NO_YES as NO_YES
    from opinionsim.classifiers._decided import DECIDED as DECIDED, RECORDED as RECORDED
    from opinionsim.classifiers._flan_t5 import FlanT5Classifier as FlanT5Classifier
    from opinionsim.classifiers._lexicon import LexiconClassifier as LexiconClassifier

__getattr__, __dir__ = on_first_use(__name__)
