"""How fast personas are drawn from a survey, and whether they have its weighted marginals.

Run ``python benchmarks/surveys.py``. It draws from the synthetic survey of the package, whose size is that of the
usual ones.
"""

from __future__ import annotations

import time
from collections import Counter

from opinionsim.foundation.streams import stream
from opinionsim.surveys import load_survey

#: Seconds in which all is drawn and checked.
_BAR_S = 5.0
#: Largest deviation of a share, in standard deviations of independent draws: about one in a million goes beyond.
_BOUND = 5.0


def personas(size: int = 10_000) -> dict[str, float]:
    """Draw personas by weight, and compare what is on their record with every weighted marginal of the survey.

    Parameters
    ----------
    size : int
        Number of personas.

    Returns
    -------
    dict
        ``seconds`` for reading, drawing and checking; ``marginals``, the number of shares compared; and ``largest``,
        the largest deviation of a share in standard deviations.
    """
    begun = time.perf_counter()
    survey = load_survey("synthetic", "synthetic")
    drawn = survey.draw(size, stream(1, "survey"), replace=True).personas.personas
    largest, marginals = 0.0, 0
    for name, shares in survey.variables().items():
        counts = Counter(persona.record.get(name) for persona in drawn)
        known = {None if value is None else f"{value:g}" if isinstance(value, float) else value for value in shares}
        assert set(counts) <= known, name
        for value, share in shares.items():
            spelled = f"{value:g}" if isinstance(value, float) else value
            deviation = abs(counts[spelled] - size * share) / (size * share * (1 - share)) ** 0.5
            largest, marginals = max(largest, deviation), marginals + 1
    return {"seconds": time.perf_counter() - begun, "marginals": marginals, "largest": largest}


def main() -> None:
    """Print the figures beside their bars."""
    size = 10_000
    found = personas(size)
    print(f"{size} personas drawn and checked in {found['seconds']:.2f} s (bar {_BAR_S:g} s)")
    print(
        f"{found['marginals']} marginals, largest deviation {found['largest']:.2f} standard deviations (bar {_BOUND:g})"
    )
    assert found["seconds"] < _BAR_S
    assert found["largest"] < _BOUND


if __name__ == "__main__":
    main()
