"""Every classic model has a page and a figure, and they say what the registry says."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from PIL import Image

from opinionsim.assembly import assemble
from opinionsim.classic import MODELS, Equation
from opinionsim.errors import SpecError
from opinionsim.foundation.bibliography import cited
from opinionsim.specification import load_experiment

_FOLDER = Path(__file__).resolve().parents[2] / "docs" / "classic"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """The script that writes the pages."""
    spec = importlib.util.spec_from_file_location("generate", _FOLDER / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_those_of_the_registry(generate: ModuleType) -> None:
    assert generate.stale() == [], "run: python docs/classic/generate.py"


def test_a_changed_model_makes_its_page_stale(generate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = MODELS["deffuant"].parameters
    other = type("Other", (parameters,), {"__doc__": f"{parameters.__doc__}\n- Source: Somebody else (2001)."})
    monkeypatch.setattr(generate, "MODELS", dict(MODELS))
    monkeypatch.setitem(generate.MODELS, "deffuant", replace(MODELS["deffuant"], parameters=other))
    assert generate.stale(["deffuant"]) == ["deffuant.md is stale"]
    longer = replace(MODELS["deffuant"], example={**MODELS["deffuant"].example, "n": 17})
    monkeypatch.setitem(generate.MODELS, "deffuant", longer)
    assert generate.stale(["deffuant"]) == ["deffuant.md is stale", "images/deffuant.png is stale"]
    monkeypatch.setitem(generate.MODELS, "another", replace(MODELS["deffuant"], name="another"))
    assert "another.md is missing" in generate.stale()
    monkeypatch.delitem(generate.MODELS, "another")
    monkeypatch.delitem(generate.MODELS, "deffuant")
    assert "deffuant.md belongs to no model" in generate.stale()


def test_a_specification_of_a_model_of_traits_is_refused() -> None:
    text = (_FOLDER / "axelrod.md").read_text(encoding="utf-8")
    assert "```yaml" not in text
    with pytest.raises(SpecError, match=r"model.classic: agents of axelrod have several traits"):
        load_experiment("classic_quickstart", {"sweep": [{"model": [{"classic": "axelrod"}]}]})


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.states != "traits"])
def test_a_page_shows_the_model_in_three_ways_that_run(name: str) -> None:
    """Marked blocks are run by the tests of all pages; here it is what they hold, and that the specification fits."""
    model, text = MODELS[name], (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert text.count("<!-- run -->\n```python\n") == 1
    assert text.count("<!-- run -->\n```bash\nopinionsim abm ") == 1
    if model.ties is not None:
        assert "```yaml" not in text
        with pytest.raises(SpecError, match=f"model.classic: {name} changes ties"):
            load_experiment(
                {
                    "name": "page",
                    "topic": {"name": "global-warming"},
                    "population": {"size": 20},
                    "interaction": {"kind": "native", "network": "ring", "steps": 5},
                    "model": {"classic": name},
                }
            )
        return
    fragment = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    experiment = load_experiment({"name": "page", **fragment})
    parts = assemble(experiment.runs[0], experiment.resources)
    assert isinstance(parts.endpoint, Equation)
    assert parts.endpoint.setup.model is model
    assert parts.endpoint.setup.network.n == model.example.get("n", 200)


@pytest.mark.parametrize("name", MODELS)
def test_figures_are_small_and_say_what_they_rest_on(name: str) -> None:
    path = _FOLDER / "images" / f"{name}.png"
    assert path.stat().st_size < 60_000
    with Image.open(path) as image:
        assert str(image.info["Description"]).startswith("Evidence: equation.")
        assert min(image.size) > 200


def test_the_overview_names_every_model() -> None:
    text = (_FOLDER / "index.md").read_text(encoding="utf-8")
    assert [name for name in MODELS if f"({name}.md)" not in text] == []


def test_every_model_cites_the_bibliography() -> None:
    sources = [each for model in MODELS.values() for each in model.source]
    assert sources
    assert [each for each in sources if not cited(each) and "Seldon" not in each] == []
