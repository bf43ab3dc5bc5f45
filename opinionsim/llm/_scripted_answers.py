"""What the scripted model says to tasks that need an answer of another form than a stance."""

from __future__ import annotations

from opinionsim.llm import phrases
from opinionsim.llm._scripted_scene import Scene
from opinionsim.llm._scripted_words import Draws
from opinionsim.registry import part


def any_sentences(n: int, draws: Draws) -> str:
    """Some sentences that fit any task."""
    said: list[str] = []
    while len(said) < n:
        sentence = draws.pick(phrases.ANSWERS)
        if sentence not in said:
            said.append(sentence)
    return " ".join(said)


@part("scripted", name="respond")
def respond(scene: Scene, draws: Draws) -> str:
    """A stance where there is a claim, else sentences that fit any task."""
    return scene.stance(draws) if scene.claim else any_sentences(2, draws)


@part("scripted", name="moderate")
def moderate(scene: Scene, draws: Draws) -> str:
    """A word on the responses, and a verdict where one is asked for."""
    text = draws.pick(phrases.MODERATION).replace("{n}", str(len(scene.received)))
    if "verdict: accepted" in scene.told.lower():
        return f"Verdict: {draws.pick(('accepted', 'rejected', 'undecided'))}\nRationale: {text}"
    return text


@part("scripted", name="question")
def question(scene: Scene, draws: Draws) -> str:
    """A question for discussion."""
    return f"Question: {draws.pick(phrases.QUESTIONS)}".replace("{n}", str(1 + int(draws.uniform() * 200)))
