import numpy as np

import opinionsim as osim


@osim.part("metric")
def share_above(opinions, threshold=0.0):
    """Share of agents whose opinion is above a threshold."""
    return np.mean(np.asarray(opinions) > threshold, axis=-1)
