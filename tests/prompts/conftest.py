from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opinionsim.opinions import OpinionScale
from opinionsim.personas import Persona
from opinionsim.prompts import Addressee, AgentPrompts, Conditions, PromptPack, load_pack
from opinionsim.topics import Claim
from tests.support.editing import own_pack

ANN = Persona("Ann Lee", -1, {"political_leaning": "Moderate", "age": "37"}, "Keeps bees.")
FLAT = Claim("the Earth is flat", "flat-earth", "falsehood", "truth")


@pytest.fixture(scope="session")
def pack() -> PromptPack:
    return load_pack()


@pytest.fixture(scope="session")
def agent(pack: PromptPack) -> Callable[..., AgentPrompts]:
    """Prompts of one agent under the usual conditions, any of them replaced."""
    usual = Addressee(OpinionScale(), Conditions(world="open", post_words=None), ANN, 2, FLAT)

    def build(source: PromptPack = pack, **changed: object) -> AgentPrompts:
        told = usual
        for name, value in changed.items():
            told = told.varied(name, value)
        return source.for_agent(told)

    return build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's copy of the default pack."""
    return own_pack(tmp_path / "mine")
