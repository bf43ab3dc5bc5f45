"""Voting rules beside those of pref_voting, a reference package, on random profiles with and without ties."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from opinionsim.consensus.voting import elect

pytest.importorskip("pref_voting", reason="the dependency group verification is not installed")

from pref_voting.c1_methods import copeland
from pref_voting.margin_based_methods import beat_path
from pref_voting.profiles import Profile
from pref_voting.profiles_with_ties import ProfileWithTies
from pref_voting.scoring_methods import borda, borda_for_profile_with_ties, plurality

#: Random profiles, half of them without ties.
_PROFILES = 10_000


def _strict(rng: np.random.Generator) -> np.ndarray:
    voters, candidates = rng.integers(1, 10), rng.integers(2, 6)
    return np.argsort(rng.random((voters, candidates)), axis=1) + 1


def _tied(rng: np.random.Generator) -> np.ndarray:
    voters, candidates = rng.integers(1, 10), rng.integers(2, 6)
    return rankdata(rng.integers(1, 5, (voters, candidates)), "dense", axis=1)


def _first(ballots: np.ndarray, rule: str) -> list[int]:
    return np.flatnonzero(elect(ballots, rule).ranks == 0).tolist()


@pytest.mark.timeout(1200)
def test_profiles_without_ties() -> None:
    rng = np.random.default_rng(1)
    for _ in range(_PROFILES // 2):
        ballots = _strict(rng)
        profile = Profile(np.argsort(ballots, axis=1).tolist())
        assert _first(ballots, "schulze") == sorted(beat_path(profile, strength_function=profile.support))
        assert _first(ballots, "copeland") == sorted(copeland(profile))
        assert _first(ballots, "borda") == sorted(borda(profile))
        assert _first(ballots, "plurality") == sorted(plurality(profile))


@pytest.mark.timeout(1200)
def test_profiles_with_ties() -> None:
    rng = np.random.default_rng(2)
    for _ in range(_PROFILES // 2):
        ballots = _tied(rng)
        profile = ProfileWithTies([dict(enumerate(ballot)) for ballot in ballots.tolist()])
        assert _first(ballots, "schulze") == sorted(beat_path(profile, strength_function=profile.support))
        assert _first(ballots, "copeland") == sorted(copeland(profile))
        assert _first(ballots, "borda") == sorted(borda_for_profile_with_ties(profile))


def test_approval_by_its_definition() -> None:
    rng = np.random.default_rng(3)
    for _ in range(_PROFILES):
        ballots = _tied(rng)
        top = int(rng.integers(1, ballots.shape[1] + 1))
        approved = [
            sum(
                sum(other < own for other in ballot) < top for ballot in ballots.tolist() for own in [ballot[candidate]]
            )
            for candidate in range(ballots.shape[1])
        ]
        assert elect(ballots, "approval", top=top).scores.tolist() == approved
        ratings = rng.integers(1, 8, ballots.shape).astype(float)
        liked = [sum(rating > 4 for rating in column) for column in ratings.T]
        assert elect(ratings, "approval", scores=True, threshold=4).scores.tolist() == liked
