"""Search over the texts of an experiment: any text is a text, in any case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import opinionsim as osim
from opinionsim import watching
from opinionsim.llm import GivenReplies
from opinionsim.store import AbsentError, StoreReader, open_store
from tests.support.running import SMALL, changed

SPEC = changed(
    SMALL,
    model={"name": "given"},
    measurement={"classifier": "lexicon"},
    interaction__steps=20,
    sweep={"cognition.confirmation_bias": ["none", "strong"]},
)
HOSTILE = "<img src=x onerror=alert(1)>"
TEXTS = ["ÄPFEL sind 100% süß, Σοφός.", HOSTILE, "a_b.*c\\d", "nothing much"]


class _InTurn:
    """Replies one text after the other."""

    def __init__(self) -> None:
        self._n = 0

    def __call__(self, prompt: Any) -> str:
        self._n += 1
        return TEXTS[self._n % len(TEXTS)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> osim.Results:
    store = str(tmp_path_factory.mktemp("search") / "s.sqlite")
    return osim.run(osim.load_experiment(SPEC), store, chat_model=GivenReplies(_InTurn()))


@pytest.fixture
def reader(results: osim.Results) -> Iterator[StoreReader]:
    with open_store(results.url, write=False) as opened:
        yield opened


def _found(reader: StoreReader, text: str, **filters: Any) -> tuple[int, set[str]]:
    """Number of hits of a search, and the texts that its first answer shows."""
    told = watching.search(reader, experiment="small", text=text, **filters)
    return told["total"], {"".join(hit["excerpt"]) for hit in told["hits"]}


@pytest.mark.parametrize(
    ("text", "place"),
    [("äpfel", 0), ("SÜß", 0), ("σΟΦΌς", 0), ("100%", 0), ("%", 0), ("ONERROR=ALERT(1)", 1),
     ("a_b", 2), (".*C", 2), ("\\d", 2), ("G M", 3)],
)  # fmt: skip
def test_a_text_is_found_literally_and_in_any_case(
    reader: StoreReader, results: osim.Results, text: str, place: int
) -> None:
    said = (results.turns["message"] == TEXTS[place]).sum()
    assert _found(reader, text) == (said, {TEXTS[place]})


@pytest.mark.parametrize("text", ["a.b", "äpfel  sind", "' OR 1=1 --", "[", "(?i)", "_x", "\x00", "\ud800", "x" * 999])
def test_what_nobody_said_is_not_found(reader: StoreReader, text: str) -> None:
    assert _found(reader, text) == (0, set())


def test_what_was_found_stands_between_what_is_around_it(reader: StoreReader) -> None:
    (hit, *_) = watching.search(reader, experiment="small", text="SRC=X")["hits"]
    assert hit["excerpt"] == ["<img ", "src=x", " onerror=alert(1)>"]


@pytest.mark.parametrize(("early", "later"), [(40, 40), (40, 5), (5, 40), (15, 15)])
def test_an_excerpt_of_a_long_text_has_whole_words_around_what_was_found(early: int, later: int) -> None:
    model = GivenReplies(lambda _: f"{'early words ' * early}found {'later words ' * later}")
    results = osim.run(osim.load_experiment(SPEC), "long.sqlite", chat_model=model)
    with open_store(results.url, write=False) as opened:
        before, found, after = watching.search(opened, experiment="small", text="FOUND")["hits"][0]["excerpt"]
    cut = "\N{HORIZONTAL ELLIPSIS}"
    assert (before.startswith(cut), found, after.endswith(cut)) == (early == 40, "found", later == 40)
    assert set(f"{before} {after}".replace(cut, "").split()) == {"early", "later", "words"}
    assert early + later == 30 or 370 < len(before) + len(after) < 410


@pytest.mark.parametrize("column", ["cell", "act", "status", "agent", "name"])
def test_filters_choose_what_the_frames_choose(reader: StoreReader, results: osim.Results, column: str) -> None:
    frame = results.turns.merge(results.runs[["run_id", "cell"]]).merge(results.agents[["run_id", "agent", "name"]])
    chosen = watching.search(reader, experiment="small")
    valid = chosen[{"name": "agents", "agent": "agents", "status": "statuses"}.get(column, f"{column}s")]
    for level in sorted(set(frame[column])):
        filtered = {"agent" if column == "name" else column: str(level)}
        assert watching.search(reader, experiment="small", **filtered)["total"] == (frame[column] == level).sum()
        assert column == "agent" or level in valid


def test_answers_follow_each_other_without_gap_or_repetition(reader: StoreReader, results: osim.Results) -> None:
    seen: list[tuple[int, int]] = []
    while True:
        told = watching.search(reader, experiment="small", start=len(seen))
        seen += [(hit["row"], hit["turn"]) for hit in told["hits"]]
        if not told["hits"]:
            break
    assert len(seen) == told["total"] == len(results.turns)
    assert seen == sorted(set(seen))


def test_an_experiment_that_is_not_there_is_said(reader: StoreReader) -> None:
    with pytest.raises(AbsentError, match="has no experiment 'large'; it contains small"):
        watching.search(reader, experiment="large")
    with pytest.raises(AbsentError, match="has no design 7"):
        watching.search(reader, experiment="small", design=7)
