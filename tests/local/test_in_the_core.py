"""Names of models in this process in the rooms of the core: prices, forecasts, frozen designs, messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import opinionsim as osim
from opinionsim.errors import SpecError
from opinionsim.llm import load_prices
from opinionsim.report import freeze
from opinionsim.specification import load_experiment
from tests.cli import test_bad_input as bad_input, test_start_up as start_up
from tests.cli.conftest import Invoke, invoke as invoke, spec as spec
from tests.support.running import SMALL, changed

CODED = {"measurement": {"classifier": "lexicon"}}


def test_a_module_of_models_loads_no_library_of_models(checkout: Path) -> None:
    start_up.test_what_is_not_needed_is_not_loaded(checkout, "import opinionsim.local._hugging_face", start_up.TORCH)


@pytest.mark.parametrize(
    ("name", "price"), [*((name, 0.0) for name in ("hf:org/model", "hf:./folder", "gguf:./file.gguf")),
                        ("hf:", None), ("gguf:", None)],
)  # fmt: skip
def test_a_model_costs_nothing(name: str, price: float | None) -> None:
    found = load_prices().price(name)
    assert (found and found.cost(10**6, 10**6)) == price


def test_a_forecast_reads_no_weights() -> None:
    (model,) = osim.plan(load_experiment(changed(SMALL, model={"name": "hf:weights-nowhere"}, **CODED))).models
    assert (model.cost, model.price) == (0, "free")
    assert "'hf:MODEL' or 'gguf:FILE' for weights in this process" in _refused({"name": "hf:"})
    assert "batch_size" in _refused({"name": "hf:weights", "options": {"batch_size": 0}})


def _refused(model: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as caught:
        osim.plan(load_experiment(changed(SMALL, model=model, **CODED)))
    return str(caught.value)


def test_weights_that_are_missing_leave_the_forecast_standing(
    invoke: Invoke, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = ("model={name: 'hf:gone/model'}", "hf download gone/model")
    bad_input.test_what_is_missing_leaves_the_forecast_standing(invoke, spec, *told, True, monkeypatch)


def test_the_list_of_models_has_them_before_all_others(invoke: Invoke) -> None:
    names = [line.split()[0] for line in invoke("list", "models").stdout.splitlines()]
    assert names[-3:] == ["hf:NAME_OR_PATH", "gguf:PATH", "PROVIDER:MODEL"]


def _frozen(model: dict[str, Any]) -> dict[str, Any]:
    frozen: dict[str, Any] = freeze(load_experiment(changed(SMALL, model=model, **CODED)))["frozen"]
    return frozen


def test_weights_that_may_change_cannot_be_frozen() -> None:
    with pytest.raises(SpecError, match="some/model: these weights may change"):
        _frozen({"name": "hf:some/model"})


def test_weights_of_a_commit_or_a_folder_are_fixed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    commit = {"name": "hf:some/model", "options": {"revision": "a" * 40}}
    assert _frozen(commit)["fixed"]["some/model"] == "a" * 40
    before = _frozen({"name": f"hf:{tmp_path}"})
    (tmp_path / "config.json").write_text("{} ")
    assert _frozen({"name": f"hf:{tmp_path}"})["hash"] != before["hash"]
