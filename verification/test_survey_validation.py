"""How well a model stands in for respondents: measures against closed forms, and whole validations by fake models."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings, strategies as st
from langchain_core.language_models import SimpleChatModel

import opinionsim as osim
from opinionsim.comparison import (
    ItemAgreement,
    SurveyValidation,
    fit_multinomial,
    intervals,
    linear_coefficients,
    predict_multinomial,
    read_validation,
    validation_experiment,
)
from opinionsim.errors import SpecError, SurveyError
from opinionsim.foundation.streams import stream
from opinionsim.messages import ChatMessage
from opinionsim.surveys import Subgroups, SurveyItem, items_of, load_survey, subgroups_of
from tests.conftest import (
    _interruptible as _interruptible,
    _loopback_only as _loopback_only,
    _own_folder as _own_folder,
)
from tests.support.examples import examples

TRUST = ("not at all", "somewhat", "fully")
N = 600


def _rows() -> list[dict[str, str]]:
    """A village: women trust more than men, and those in town less; one in twenty does not answer."""
    rng = stream(3, "test")
    rows = []
    for _ in range(N):
        woman, town = rng.random() < 0.5, rng.random() < 0.4
        level = 0.4 + 0.9 * woman - 0.5 * town + rng.normal(0, 0.7)
        trust = TRUST[int(np.clip(np.round(level), 0, 2))]
        again = trust if rng.random() < 0.8 else TRUST[int(rng.integers(3))]
        rows.append(
            {
                "sex": "F" if woman else "M",
                "town": "yes" if town else "no",
                "trust": "no answer" if rng.random() < 0.05 else trust,
                "later": again,
                "rate": str(int(rng.integers(3)) * 5),
                "w": f"{0.5 + rng.random():.3f}",
            }
        )
    return rows


ROWS = _rows()
MAPPING: dict[str, Any] = {
    "name": "small town",
    "weight": "w",
    "columns": [
        {"column": "sex", "recode": {"F": "a woman", "M": "a man"}, "clause": "You are ${value}"},
        {"column": "town", "recode": {"yes": "in town", "no": "outside"}, "clause": "You live ${value}"},
        {
            "column": "trust",
            "question": "Do you trust your neighbours?",
            "asked": "2020-05-01",
            "options": list(TRUST),
            "skip": ["no answer"],
            "retest": "later",
        },
        {"column": "later"},
        {"column": "rate", "question": "How many of ten would help you?", "options": [0, 5, 10]},
    ],
}


class Town:
    """Writes the survey and its mapping, with changes."""

    def __init__(self, folder: Path) -> None:
        self.data, self.map = folder / "town.csv", folder / "town.yaml"
        self.write()

    def write(self, rows: Sequence[dict[str, str]] = ROWS, **changes: Any) -> None:
        """Write the files; `columns` changes fields of columns, by name, and None leaves a column out."""
        columns = changes.pop("columns", {})
        mapped = [
            {**each, **columns.get(each["column"], {})}
            for each in MAPPING["columns"]
            if columns.get(each["column"], {}) is not None
        ]
        mapped = [{key: value for key, value in each.items() if value is not None} for each in mapped]
        lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
        self.data.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.map.write_text(yaml.safe_dump({**MAPPING, **changes, "columns": mapped}), encoding="utf-8")

    def validate(self, reply: Callable[[dict[str, str], str], str] | None = None, **options: Any) -> SurveyValidation:
        """A validation in which the model replies as a function of the respondent's row and the question says."""

        def answer(prompt: list[ChatMessage]) -> str:
            assert reply is not None
            named = re.search(r"Respondent (\d+)", prompt[0].content)
            assert named is not None
            return reply(ROWS[int(named[1]) - 1], prompt[-1].content)

        if reply is not None:
            options["chat_model"] = osim.GivenReplies(answer)
        if "chat_model" in options:
            options["model"] = "given"
        store = options.pop("store", self.data.with_name("s.sqlite"))
        chat_model, cutoff = options.pop("chat_model", None), options.pop("cutoff", None)
        experiment = validation_experiment(self.data, self.map, **{"size": 200, "items": ["trust"], **options})
        return read_validation(experiment, osim.run(experiment, store, chat_model=chat_model), cutoff=cutoff)


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def _truth(row: dict[str, str], question: str) -> str:
    """What the respondent answered, in words."""
    return row["trust"] if "trust" in question else row["rate"]


def _value(found: SurveyValidation, measure: str, of: str = "model", item: str = "trust") -> float:
    rows = found.measures[
        (found.measures["measure"] == measure) & (found.measures["of"] == of) & (found.measures["item"] == item)
    ]
    return float(rows["value"].iloc[0])


# Whole validations.


def test_who_answers_as_the_respondents_did_agrees_within_sampling(town: Town) -> None:
    found = town.validate(_truth)
    assert _value(found, "accuracy") == 1
    assert _value(found, "correlation") == pytest.approx(1)
    ratio = found.measures[(found.measures["measure"] == "variance ratio") & (found.measures["of"] == "model")].iloc[0]
    assert ratio["low"] < 1 < ratio["high"]
    assert ratio["value"] == pytest.approx(1, abs=0.15)
    # Standard error of a share of 200 is at most 0.035.
    assert _value(found, "total variation") < 0.08
    assert _value(found, "subgroup error") < 0.08
    assert _value(found, "coefficient signs") == 1
    # Exactly what the respondents' own answers give: these are the yardstick.
    for measure in ("variance ratio", "total variation", "Wasserstein distance", "subgroup error"):
        assert _value(found, measure) == pytest.approx(_value(found, measure, "respondents"), abs=1e-12)
    # Respondents without an answer made the model say what no option is: counted, and in no measure.
    (item,) = found.items.itertuples()
    drawn = (item.drawn, item.missing, item.model_missing, item.again_missing)
    assert drawn == (200, item.missing, item.missing, item.missing)
    assert 2 <= item.missing <= 25
    assert item.pairs == 200 - item.missing
    assert item.trained_on == sum(row["trust"] != "no answer" for row in ROWS) - item.pairs


def test_who_answers_for_the_subgroup_alone_is_flat(town: Town) -> None:
    town.write(columns={"town": None})
    found = town.validate(lambda row, question: "fully" if row["sex"] == "F" else "somewhat")
    assert _value(found, "variance ratio") == pytest.approx(0, abs=1e-9)
    assert _value(found, "variance ratio", "respondents") > 0.7
    # Between the sexes it differs as it should.
    assert _value(found, "coefficient signs") == 1
    assert _value(found, "accuracy") < _value(found, "accuracy", "respondents again")


def test_retests_are_the_ceiling(town: Town) -> None:
    found = town.validate(_truth)
    assert _value(found, "accuracy", "model again") == 1
    # Eight in ten are asked again to the same effect, and a third of the others by chance.
    assert _value(found, "accuracy", "respondents again") == pytest.approx(0.8 + 0.2 / 3, abs=0.08)
    town.write(columns={"trust": {"retest": None}, "later": None})
    assert "respondents again" not in set(town.validate(_truth).measures["of"])


def test_each_item_is_asked_twice_of_the_same_persons_without_any_answer_in_the_prompt(town: Town) -> None:
    model = osim.GivenReplies(lambda prompt: "1" if "trust" in prompt[-1].content else "10")
    found = town.validate(items=None, chat_model=model, size=20)
    assert len(model.prompts) == 2 * 2 * 20
    systems = {item: sorted(p[0].content for p in model.prompts if item in p[-1].content) for item in ("trust", "help")}
    assert systems["trust"] == systems["help"]
    for prompt in model.prompts:
        assert len(prompt) == 2
        assert "belief:" not in prompt[0].content
        assert re.search(r"You are a (wo)?man\. You live (in town|outside)\.", prompt[0].content)
        assert not any(option in prompt[0].content for option in TRUST)
        shown = "1: not at all\n2: somewhat\n3: fully\n" if "trust" in prompt[-1].content else "0: 0\n5: 5\n10: 10\n"
        assert shown in prompt[-1].content
        assert prompt[-1].content.startswith(("Do you trust your neighbours?\n", "How many of ten would help you?\n"))
    assert _value(found, "total variation", item="rate") > 0.5
    # A validation over all items is their mean.
    mean = np.mean([_value(found, "accuracy", item=item) for item in ("trust", "rate")])
    assert _value(found, "accuracy", item="all") == pytest.approx(mean)


def test_asking_again_makes_no_call(town: Town) -> None:
    first = town.validate(_truth, size=30)
    silent = osim.GivenReplies([])
    again = town.validate(chat_model=silent, size=30)
    assert not silent.prompts
    assert again.measures.equals(first.measures)


def test_the_regression_knows_only_those_who_were_not_drawn(town: Town) -> None:
    rows = [dict(row) for row in ROWS]
    names = validation_names(town, 100)
    for i, row in enumerate(rows):
        row["trust"] = "fully" if i + 1 in names else "not at all"
    town.write(rows)
    found = town.validate(lambda row, question: "3", size=100)
    assert _value(found, "accuracy") == 1
    assert _value(found, "accuracy", "regression") == 0
    assert _value(found, "accuracy", "modal answer") == 0


def validation_names(town: Town, size: int) -> set[int]:
    """Rows of the respondents whom a validation draws."""
    seen: set[int] = set()

    def reply(prompt: list[ChatMessage]) -> str:
        named = re.search(r"Respondent (\d+)", prompt[0].content)
        assert named is not None
        seen.add(int(named[1]))
        return "1"

    town.validate(chat_model=osim.GivenReplies(reply), size=size, store=town.data.with_name("names.sqlite"))
    return seen


class Plain(SimpleChatModel):
    """A model that is not scripted and always says the same."""

    @property
    def _llm_type(self) -> str:
        return "plain"

    def _call(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> str:
        return "2"


def test_findings_are_stated_of_models_and_not_of_scripted_answers(town: Town) -> None:
    scripted = town.validate(size=40)
    assert scripted.title.startswith("SCRIPTED STAND-IN, not evidence about people or models.")
    assert scripted.findings == ()
    assert any("stand-in, so no finding" in note for note in scripted.notes)
    model = town.validate(size=40, chat_model=Plain(), store=town.data.with_name("plain.sqlite"))
    assert model.title.startswith("Language-model agents.")
    (finding,) = model.findings
    assert finding.startswith("Variance ratio within subgroups 0.00 (0.00 to 0.00): flattened")
    for frame in (model.measures, model.items, model.subgroups):
        assert set(frame["evidence"]) == {"model"}


@pytest.mark.parametrize(
    ("cutoff", "said"),
    [
        (None, ["may be in the training data: no cutoff is given", "may be in the training data: the mapping"]),
        (date(2020, 4, 30), ["asked after the cutoff", "may be in the training data: the mapping gives no date"]),
        (date(2020, 5, 1), ["may be in the training data", "may be in the training data: the mapping gives no date"]),
    ],
)
def test_items_are_dated_against_the_cutoff(town: Town, cutoff: date | None, said: list[str]) -> None:
    found = town.validate(items=None, cutoff=cutoff, size=10)
    for row, start in zip(found.items.itertuples(), said, strict=True):
        assert row.training_data.startswith(start)
        assert cutoff is None or row.item != "trust" or row.training_data == start
    assert any("No cutoff" in note for note in found.notes) == (cutoff is None)


def test_respondents_who_are_drawn_for_certain_are_told_of(town: Town) -> None:
    heavy = [{**row, "w": "40" if i < 3 else row["w"]} for i, row in enumerate(ROWS)]
    town.write(heavy)
    found = town.validate(size=50)
    assert any(note.startswith("3 respondents have so much weight") for note in found.notes)


# Bad input, before any call.


@pytest.mark.parametrize(
    ("options", "columns", "problem"),
    [
        ({"items": ["faith"]}, {}, "has no item 'faith'; valid: trust, rate"),
        ({"items": ["sex"]}, {}, "'sex' cannot be asked, because the mapping gives it no question"),
        ({"items": []}, {}, "no item is named; valid: trust, rate"),
        ({"items": ["trust", "trust"]}, {}, "item 'trust' is named twice"),
        ({}, {"trust": {"clause": "You trust ${value}", "retest": None}}, "the persona states it in the clause of 'tr"),
        ({"items": None}, {"trust": None, "rate": {"question": "", "options": None}}, "has no items"),
        ({}, {"trust": {"options": ["fully", "somewhat"]}}, "has the value 'not at all', neither an option of 'trust'"),
        (
            {"items": ["rate"]},
            {"rate": {"recode": {"0": "2", "5": "1"}}},
            "the answer 1: 2 to 'rate' could be confused with a",
        ),
        ({"items": ["rate"]}, {"rate": {"recode": {"0": "few", "5": "few"}}}, "options of 'rate' must differ in words"),
        ({"items": ["all"]}, {"rate": {"name": "all"}}, "an item cannot be named 'all'"),
        ({"size": 301}, {}, "size 301 leaves 299 of 600 respondents to train the regression on.*valid: 2 to 300"),
        ({"size": 1}, {}, "size must be a whole number of at least 2; got 1"),
        ({"size": True}, {}, "size must be a whole number of at least 2; got True"),
        ({"overrides": ["survey.weighting=analysis"]}, {}, "only model, execution, prompts can be changed"),
        ({"overrides": {"replicates": 2}}, {}, "only model, execution, prompts can be changed"),
    ],
)
def test_what_cannot_be_validated_is_refused(
    town: Town, options: dict[str, Any], columns: dict[str, Any], problem: str
) -> None:
    town.write(columns=columns)
    with pytest.raises(SpecError, match=problem):
        town.validate(_truth, **options)
    assert not town.data.with_name("s.sqlite").exists()


def test_one_respondent_is_no_survey(town: Town) -> None:
    town.write(ROWS[:1])
    with pytest.raises(SurveyError, match=r"size 2 leaves 0 of 1 respondents .* a survey needs at least 4 respondents"):
        town.validate(_truth, size=2)


def test_items_that_nobody_answered_are_refused(town: Town) -> None:
    town.write([{**row, "trust": "no answer"} for row in ROWS])
    with pytest.raises(SurveyError, match="nobody has answered 'trust'"):
        town.validate(_truth)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"sex": {"options": ["F", "M"]}}, r"columns\[0\].options: need a question"),
        ({"rate": {"options": [5]}}, "must be two or more distinct values; got 5"),
        ({"rate": {"options": [5, 5]}}, "must be two or more distinct values; got 5, 5"),
        ({"rate": {"skip": [5]}}, "'5' is also an option"),
        ({"trust": {"retest": "sex"}}, "retest: must name another column without a clause, .* got 'sex'"),
        ({"trust": {"retest": "gone"}}, "got 'gone'; columns without one: later, rate"),
        ({"trust": {"retest": "trust"}}, "got 'trust'"),
        ({"later": {"retest": "rate"}}, "for an item with options; got 'rate'"),
    ],
)
def test_mappings_whose_items_are_none_are_refused(town: Town, columns: dict[str, Any], problem: str) -> None:
    town.write(columns=columns)
    with pytest.raises(SurveyError, match=problem):
        validation_experiment(town.data, town.map)


# Measures, on arrays.


def _item(answers: Sequence[float], again: Sequence[float] | None = None, k: int = 3) -> SurveyItem:
    later = None if again is None else np.array(again, dtype=float)
    labels = tuple(f"option {chr(97 + i)}" for i in range(k))
    return SurveyItem("q", "Why?", None, tuple(range(1, k + 1)), labels, np.array(answers, dtype=float), later)


def _agreement(
    survey: Sequence[float],
    drawn: Sequence[int],
    said: Sequence[float],
    *,
    again: Sequence[float] | None = None,
    members: Sequence[Sequence[bool]] | None = None,
    weights: Sequence[float] | None = None,
    k: int = 3,
) -> ItemAgreement:
    """Agreement of an item; `members` has one row a subgroup, each a value of one variable."""
    inside = np.ones((1, len(survey)), dtype=bool) if members is None else np.array(members, dtype=bool)
    groups = Subgroups(tuple(("v", f"{i}") for i in range(len(inside))), inside.T)
    return ItemAgreement(
        _item(survey, k=k),
        None if weights is None else np.array(weights, dtype=float),
        groups,
        groups,
        np.array(drawn),
        np.array(said, dtype=float),
        np.array(said if again is None else again, dtype=float),
    )


def _measured(found: ItemAgreement) -> dict[tuple[str, str], float]:
    return found.measures(np.ones(len(found.own)))


def test_distances_by_hand() -> None:
    # The survey: a quarter each of 0 and 1, half of 2. The model: all say 0.
    found = _measured(_agreement([0, 1, 2, 2] * 5, range(4), [0, 0, 0, 0]))
    assert found["total variation", "model"] == pytest.approx(0.75)
    # A quarter moves one step of two, half of them two steps.
    assert found["Wasserstein distance", "model"] == pytest.approx(0.25 / 2 + 0.5)
    assert found["total variation", "respondents"] == 0
    assert found["Wasserstein distance", "respondents"] == 0


def test_the_survey_is_weighted_and_the_drawn_are_not() -> None:
    # Weights 3 to 1: shares of 0 and 2 are 3/4 and 1/4.
    survey, weights = [0, 2] * 20, [3, 1] * 20
    found = _measured(_agreement(survey, range(4), [0, 0, 0, 2], weights=weights))
    assert found["total variation", "model"] == pytest.approx(0)
    assert found["total variation", "respondents"] == pytest.approx(0.25)


def test_the_variance_ratio_is_that_within_subgroups() -> None:
    # Two subgroups of 40, half of them drawn; the model says the mean of each, and so differs between them alone.
    survey = [0, 2] * 20 + [2, 4] * 20
    members = [[True] * 40 + [False] * 40, [False] * 40 + [True] * 40]
    drawn = [*range(20), *range(40, 60)]
    found = _measured(_agreement(survey, drawn, [1] * 20 + [3] * 20, members=members, k=5))
    assert found["variance ratio", "model"] == 0
    # Sample variances of +-1 in 20 and in 40 respondents are 20/19 and 40/39.
    assert found["variance ratio", "respondents"] == pytest.approx((20 / 19) / (40 / 39))


@given(st.integers(1, 3), st.integers(0, 10**6))
@settings(max_examples=25)
def test_a_narrower_spread_by_a_factor_has_its_square_as_ratio(factor: int, seed: int) -> None:
    # Both answer at equal distances from the middle of the subgroup: the model at `factor`, respondents at 3.
    rng = stream(seed, "test")
    signs = rng.choice([-1, 1], 60)
    survey = np.where(rng.permutation(120) < 60, 0, 6)
    drawn = np.arange(60)
    found = _measured(_agreement(survey.tolist(), drawn.tolist(), (3 + factor * signs).tolist(), k=7))
    wide = _measured(_agreement(survey.tolist(), drawn.tolist(), (3 + 3 * signs).tolist(), k=7))
    assert found["variance ratio", "model"] == pytest.approx(
        wide["variance ratio", "model"] * (factor / 3) ** 2, abs=1e-12
    )


@given(
    st.lists(st.sampled_from([0, 1, 2, 3]), min_size=12, max_size=40),
    st.lists(st.sampled_from([0, 1, 2, 3]), min_size=3, max_size=12),
)
@examples(50)
def test_distances_are_ordered_and_blind_to_the_order_of_respondents(survey: list[int], said: list[int]) -> None:
    drawn = list(range(len(said) - 1))
    said = said[: len(drawn)]
    one = _measured(_agreement(survey + survey, drawn, said, k=4))
    other = _measured(_agreement(survey + survey, drawn[::-1], said[::-1], k=4))
    assert 0 <= one["Wasserstein distance", "model"] <= one["total variation", "model"] + 1e-12 <= 1 + 2e-12
    assert one == pytest.approx(other, nan_ok=True)


def test_subgroup_errors_by_hand_and_with_their_sizes() -> None:
    # Means on 0..1 are 0 and 1 in the survey, 1/2 and 1 of the model; 9 drawn of the third subgroup are too few.
    survey = [0] * 30 + [2] * 30 + [1] * 30
    members = [[i // 30 == group for i in range(90)] for group in range(3)]
    drawn = [*range(15), *range(30, 45), *range(60, 69)]
    agreement = _agreement(survey, drawn, [1] * 15 + [2] * 15 + [0] * 9, members=members, weights=[1, 3] * 45)
    assert _measured(agreement)["subgroup error", "model"] == pytest.approx(0.25)
    table = agreement.subgroups()
    assert table["value"].tolist() == ["0", "1"]
    assert table["difference"].tolist() == [0.5, 0]
    assert table["n"].tolist() == [30, 30]
    # Kish: (15 + 45)^2 / (15 + 135).
    assert table["effective_n"].tolist() == pytest.approx([24, 24])
    assert table["model_n"].tolist() == [15, 15]


def test_coefficients_agree_by_their_own_values() -> None:
    # Answers of 1, 2 and 3 steps more for values a, b and c of one variable, which the model turns round.
    k, each = 5, 20
    members = [[i // each == group for i in range(4 * each)] for group in range(4)]
    survey = [float(i // each) for i in range(4 * each)]
    drawn = [i for i in range(4 * each) if i % 2]
    same = _measured(_agreement(survey, drawn, [survey[i] for i in drawn], members=members, k=k))
    assert same["coefficient correlation", "model"] == pytest.approx(1)
    assert same["coefficient signs", "model"] == 1
    turned = _measured(_agreement(survey, drawn, [3 - survey[i] for i in drawn], members=members, k=k))
    assert turned["coefficient correlation", "model"] == pytest.approx(-1)
    assert turned["coefficient signs", "model"] == 0
    flat = _measured(_agreement(survey, drawn, [2.0] * len(drawn), members=members, k=k))
    assert np.isnan(flat["coefficient correlation", "model"])
    assert flat["coefficient signs", "model"] == 0


def test_missing_answers_count_in_no_measure() -> None:
    nan = np.nan
    # Pairs: (0, 0), (2, 0); the third respondent did not answer, the model not for the fourth.
    survey = [0, 2, nan, 1, 0, 0, 2, 2]
    agreement = _agreement(survey, range(4), [0, 0, 2, nan], again=[0, 1, nan, 2])
    found = _measured(agreement)
    assert found["accuracy", "model"] == 0.5
    assert found["accuracy", "model again"] == 0.5
    # Shares of the survey: 3, 1 and 3 of 7; of the model: 2, 0, 1 of 3.
    assert found["total variation", "model"] == pytest.approx(2 / 3 - 3 / 7)
    assert agreement.trained_on == 4


def test_baselines_by_hand() -> None:
    # Who was not drawn: of the first subgroup all say 0, of the second all say 2, and there are more of these.
    members = [[i % 2 == 0 or i > 89 for i in range(100)], [i % 2 == 1 and i <= 89 for i in range(100)]]
    survey = [0.0 if members[0][i] else 2.0 for i in range(100)]
    survey[0] = 2.0
    found = _measured(_agreement(survey, [0, 1, 2, 3], [0, 0, 0, 0], members=members))
    assert found["accuracy", "regression"] == 0.75
    assert found["accuracy", "modal answer"] == 0.25
    assert found["accuracy", "model"] == 0.25


def test_intervals_of_a_share_have_the_textbook_width() -> None:
    n = 100
    said = [1.0] * 70 + [0.0] * 30
    agreement = _agreement([1.0] * n + [1.0, 0.0], range(n), said)
    table = intervals([agreement]).set_index(["measure", "of"])
    row = table.loc[("accuracy", "model")]
    assert row["value"] == 0.7
    # A standard deviation of 400 resamples has a relative error of 3.5 %.
    assert (row["high"] - row["low"]) / 2 == pytest.approx(1.96 * np.sqrt(0.7 * 0.3 / n), rel=0.12)
    nearly = _agreement([1.0] * n + [1.0, 0.0], range(n), [1.0] * 99 + [0.0])
    assert intervals([nearly]).set_index(["measure", "of"]).loc[("accuracy", "model"), "high"] == 1


def test_items_are_resampled_together() -> None:
    # Two items on which the same persons fail: their mean is as uncertain as either.
    said = [1.0] * 50 + [0.0] * 50
    one = _agreement([1.0] * 100 + [1.0, 0.0], range(100), said)
    two = _agreement([1.0] * 100 + [1.0, 0.0], range(100), said)
    two.item = SurveyItem("r", "Where?", None, (1, 2, 3), ("a", "b", "c"), two.item.answers, None)
    table = intervals([one, two])
    widths = table[(table["measure"] == "accuracy") & (table["of"] == "model")]
    assert widths["item"].tolist() == ["q", "r", "all"]
    assert (widths["high"] - widths["low"]).nunique() == 1


# Regressions.


def test_the_multinomial_regression_recovers_known_coefficients() -> None:
    rng = stream(1, "test")
    n = 20_000
    x = (rng.random((n, 2)) < 0.5).astype(float)
    known = np.array([[0.0, 0.3, -0.4], [0.0, 1.0, -1.0], [0.0, -0.5, 0.8]])
    chances = np.exp(known[0] + x @ known[1:])
    chances /= chances.sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1)
    weights = np.ones(n)
    found = fit_multinomial(x, y, weights, 3)
    # Coefficients less those of the first option; their standard errors are below 0.05.
    np.testing.assert_allclose(found - found[:, :1], known, atol=0.15)
    np.testing.assert_allclose(predict_multinomial(found, x), chances, atol=0.03)
    assert fit_multinomial(x, y, weights * 7, 3) == pytest.approx(found)


def test_weights_of_the_regression_count_as_persons() -> None:
    x, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    weights = np.array([3.0, 1.0, 1.0, 3.0])
    rows = np.repeat(np.arange(4), weights.astype(int))
    # The ridge is on weights of mean 1: four rows and eight differ by it, so both are repeated often.
    many, often = np.tile(np.arange(4), 500), np.tile(rows, 500)
    one = predict_multinomial(fit_multinomial(x[many], y[many], weights[many], 2), x)
    two = predict_multinomial(fit_multinomial(x[often], y[often], np.ones(len(often)), 2), x)
    np.testing.assert_allclose(one, two, atol=2e-3)
    np.testing.assert_allclose(one[:, 1], [0.25, 0.25, 0.75, 0.75], atol=5e-3)


def test_linear_coefficients_are_exact_and_zero_where_there_is_no_effect() -> None:
    x = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [1, 0]], dtype=float)
    weights = np.array([1, 2, 3, 4, 5], dtype=float)
    np.testing.assert_allclose(linear_coefficients(x, 2 + x @ [0.5, -0.25], weights), [0.5, -0.25])
    assert linear_coefficients(x, np.full(5, 0.7), weights).tolist() == [0, 0]
    twice = np.column_stack([x[:, 0], x[:, 0]])
    np.testing.assert_allclose(linear_coefficients(twice, x[:, 0], weights), [0.5, 0.5])


# Items and subgroups of a survey.


def test_subgroups_are_values_or_weighted_quarters_of_variables_that_are_no_items() -> None:
    survey = load_survey("synthetic", "synthetic")
    groups = subgroups_of(survey)
    variables = list(dict.fromkeys(variable for variable, _ in groups.names))
    assert variables == ["age", "gender", "education", "residence", "children", "ideology", "interest"]
    assert survey.weights is not None
    ages = groups.of(["age"])
    assert ages.names[0][1].startswith("18 to ")
    shares = survey.weights @ ages.members / survey.weights.sum()
    # One year of age holds at most 3 % of the respondents.
    np.testing.assert_allclose(shares, 0.25, atol=0.03)
    assert (ages.members.sum(axis=1) == 1).all()


def test_items_have_options_in_the_order_of_the_mapping(town: Town) -> None:
    survey = load_survey(town.data, town.map)
    trust, rate = items_of(survey)
    assert (trust.points, trust.labels) == ((1, 2, 3), TRUST)
    assert (rate.points, rate.labels) == ((0, 5, 10), ("0", "5", "10"))
    places = {**{text: float(i) for i, text in enumerate(TRUST)}, "no answer": np.nan}
    np.testing.assert_array_equal(trust.answers, [places[row["trust"]] for row in ROWS])
    assert trust.again is not None
    np.testing.assert_array_equal(trust.again, [places[row["later"]] for row in ROWS])
    assert [name for name, _ in dict.fromkeys((v, "") for v, _ in subgroups_of(survey).names)] == ["sex", "town"]
