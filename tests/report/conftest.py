"""Stores to report on: a small one of the scripted model, and one of a model that says all that a page must bear."""

from __future__ import annotations

from pathlib import Path

import pytest

import opinionsim as osim
from opinionsim.messages import ChatMessage
from opinionsim.report import write_archive
from opinionsim.specification import load_experiment
from opinionsim.store import Results
from tests.support.archives import STUDY, carried_out
from tests.support.pages import HOSTILE
from tests.support.provider import StubProvider
from tests.support.provider_replies import scripted_reply
from tests.support.running import SMALL, changed

#: A word that no line holds, and a sentence that is written from right to left.
LONG, HEBREW = "w" * 10_000, "אני חושב שהסיפור הזה נכון."
SCRIPTED = changed(
    SMALL,
    name="scripted-study",
    description="Is it so?",
    replicates=3,
    interaction__steps=10,
    measurement={"classifier": "lexicon", "texts": ["report", "post"]},
    sweep={"cognition.confirmation_bias": ["none", "strong"]},
)
CONTRAST = {"measure": "diversity", "of": "strong - none"}
_replies = scripted_reply()


def strange(messages: list[ChatMessage], seed: int) -> str:
    """A reply of the scripted model, with something behind it that a page must bear.

    Seeds differ with the port of the provider: of what a page must show, too much is there to be missed by chance.
    """
    behind = [HOSTILE[seed % len(HOSTILE)], HEBREW, f"\N{RIGHT-TO-LEFT MARK}{HEBREW}"]
    if seed // len(HOSTILE) % 3 == 0:
        behind.append(LONG)
    return " ".join([_replies(messages, seed), *behind])


@pytest.fixture(scope="package")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results of the scripted model; to be read only."""
    return osim.run(load_experiment(SCRIPTED), str(tmp_path_factory.mktemp("scripted") / "a.sqlite"))


@pytest.fixture(scope="package")
def modelled(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results of a model behind a provider, with a contrast and a variant; to be read only."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with StubProvider(strange) as stub:
        spec = changed(
            SCRIPTED,
            name="model-study",
            description="Is <b>diversity</b> larger?",
            model={"name": "openai:stub", "options": {"base_url": stub.base_url}},
            analysis={"primary": "D rises", "contrasts": {"D rises": CONTRAST}, "choices": {"last": [1, 2]}},
        )
        results = osim.run(load_experiment(spec), str(tmp_path_factory.mktemp("model") / "a.sqlite"))
    monkeypatch.undo()
    return results


@pytest.fixture
def page_of(tmp_path: Path) -> Path:
    """Where a page is written."""
    return tmp_path / "report.html"


@pytest.fixture(scope="package")
def small(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A finished experiment of scripted agents with two conditions."""
    return carried_out(STUDY, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="package")
def small_archive(small: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its archive, which no test changes."""
    folder = tmp_path_factory.mktemp("archives") / "small"
    write_archive(small, folder)
    return folder
