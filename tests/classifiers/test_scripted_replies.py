"""Whole replies of the scripted model, coded by the lexicon: what the demonstration and the studies rest on."""

from __future__ import annotations

import pytest

from opinionsim.assembly import assemble
from opinionsim.classifiers import items_of, load_classifier
from opinionsim.foundation.data import data_folder
from opinionsim.llm import ScriptedChatModel
from opinionsim.llm.phrases import stated
from opinionsim.messages import Message
from opinionsim.prompts import Addressee, Conditions
from opinionsim.specification import load_experiment
from opinionsim.topics import load_topics

pytestmark = pytest.mark.long

TOPICS = load_topics(data_folder("topics") / "chuang2024.yaml")


@pytest.mark.parametrize("framing", ["falsehood", "truth"])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("topic", TOPICS)
def test_whole_replies_are_coded_as_they_are_meant(topic: str, framing: str, masked: bool) -> None:
    """Posts, reports and probes of agents of every opinion, with all their filler sentences."""
    experiment = load_experiment(
        {
            "name": "replies",
            "topic": {"name": topic, "framing": framing, "masked": masked},
            "interaction": {"kind": "dyadic", "steps": 1},
        }
    )
    (run,) = experiment.runs
    parts = assemble(run, experiment.resources)
    model = ScriptedChatModel().bound(parts.pack.marks, parts.scale)
    texts = []
    for agent, (persona, opinion) in enumerate(zip(*_members(parts), strict=True)):
        told = Addressee(parts.scale, Conditions(masked=masked, post_words=None), persona, opinion, parts.claim)
        prompts = parts.pack.for_agent(told)
        texts += _replies(model, prompts, range(100 * agent, 100 * agent + 8))
    coded = load_classifier("lexicon").classify(items_of(texts, parts.claim)).value
    wrong = [(text, stated(text), value) for text, value in zip(texts, coded, strict=True) if stated(text) != value]
    assert not wrong, f"{len(wrong)} of {len(texts)}: {wrong[:3]}"


def _members(parts):
    return parts.population.personas, parts.population.opinions


def _replies(model, prompts, seeds):
    """Replies to every task, from the first turn of an agent."""
    from langchain_core.messages import HumanMessage, SystemMessage

    from opinionsim.prompts import Past
    from opinionsim.schedules import PROBE, REPORT, REVIEW, WRITE

    system = SystemMessage(prompts.system().content)
    post = Message("I lean slightly in favour of Theory XYZ.")
    for act, received in ((WRITE, ()), (REVIEW, (post,)), (REPORT, ()), (PROBE, ())):
        task = HumanMessage(prompts.task(act, received, Past()).content)
        for seed in seeds:
            yield model.invoke([system, task], seed=seed).text
