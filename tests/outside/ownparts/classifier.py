import numpy as np

import opinionsim as osim
from opinionsim.opinions import OpinionEstimates, OpinionScale


@osim.part("classifier")
class Length:
    """Texts of more than `middle` characters are at the high end of the scale, others at the low end."""

    name, needs_claim, reads_context, reads_about = "length", False, False, False

    def __init__(self, scale=None, middle=100):
        self.scale, self.options = scale or OpinionScale(), {"middle": middle}

    def classify(self, items):
        chosen = [-1 if len(item.text) > self.options["middle"] else 0 for item in items]
        return OpinionEstimates.from_probabilities(self.scale, np.eye(len(self.scale))[chosen])
