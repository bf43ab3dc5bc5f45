from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, ByT5Tokenizer, T5ForConditionalGeneration
from typer.testing import CliRunner

from opinionsim.classifiers import Classifier, FlanT5Classifier, Item, fit_calibration, items_of, load_classifier
from opinionsim.classifiers._flan_t5_prompt import ScalePrompt
from opinionsim.cli import app
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.opinions import OpinionScale
from opinionsim.testing import ClassifierContract
from opinionsim.topics import Claim
from tests.classifiers._tiny_t5 import byte_folder, save_model, sentencepiece_folder, sentencepiece_tokenizer

TEA = Claim("tea tastes better than coffee", "tea", "truth")
FEE = Claim("the museum should not charge an entry fee", "museum", "falsehood")
TEXTS = (
    "I believe that the claim is true.",
    "No.",
    "Having read this post, I am undecided, though I lean towards the other side. " * 3,
    "Step by step: first, I doubt it. Nobody knows whether tea tastes better than coffee, and I would not say.",
    "It goes against all I have read.",
)
SCALES = {
    "five": OpinionScale(),
    "seven": OpinionScale.of_size(7),
    "yes-no": OpinionScale((0, 1)),
    "likert": OpinionScale((1, 2, 3, 4, 5)),
    "prefixes": OpinionScale((1, 2, 10, 12), ("none", "little", "much", "all")),
}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Tiny models with random weights, by the kind of their vocabulary."""
    top = tmp_path_factory.mktemp("weights")
    found = {"pieces": sentencepiece_folder(top / "pieces"), "bytes": byte_folder(top / "bytes")}
    # A model is loaded once for as long as a classifier has it.
    held = [build(folder) for folder in found.values()]
    yield found
    held.clear()


@pytest.fixture
def short(tmp_path: Path) -> str:
    """A wording of few bytes, to save time where the wording does not matter."""
    path = tmp_path / "short.j2"
    path.write_text("{{ claim }}? {{ statement }}: {{ points }}")
    return str(path)


def build(folder: Path, scale: OpinionScale | None = None, **options: Any) -> FlanT5Classifier:
    """The classifier through the registry; its random weights put nearly all mass off the scale."""
    options = {"off_scale_threshold": 1.0, "device": "cpu", **options}
    found = load_classifier("flan-t5", scale, model=str(folder), **options)
    assert isinstance(found, FlanT5Classifier)
    return found


class TestContractWithPieces(ClassifierContract):
    @pytest.fixture(autouse=True)
    def _options(self, folders: dict[str, Path]) -> None:
        self._folder, self._given = folders["pieces"], {"max_tokens": 400}

    def classifier(self, scale: OpinionScale) -> Classifier:
        return build(self._folder, scale, **self._given)


class TestContractWithBytes(TestContractWithPieces):
    @pytest.fixture(autouse=True)
    def _options(self, folders: dict[str, Path], short: str) -> None:
        self._folder, self._given = folders["bytes"], {"max_tokens": 200, "prompt": short}


# What the numbers are


@cache
def reference(folder: Path) -> tuple[Any, Any]:
    """Tokenizer and model, loaded without any code of the classifier."""
    return AutoTokenizer.from_pretrained(folder), T5ForConditionalGeneration.from_pretrained(folder).eval()


def exhaustive(folder: Path, scale: OpinionScale, claim: Claim, text: str, *, eos: bool) -> np.ndarray:
    """Probability of each label's tokens after the prompt: the decoder runs anew for each label."""
    tokenizer, model = reference(folder)
    prompt = tokenizer(ScalePrompt(scale)(claim.text, text), return_tensors="pt")
    with torch.no_grad():
        read = model.encoder(**prompt)
    found = []
    for point in scale.points:
        label = tokenizer(str(point), add_special_tokens=eos).input_ids
        with torch.no_grad():
            start = torch.tensor([[0, *label[:-1]]])
            logits = model(
                encoder_outputs=read, attention_mask=prompt["attention_mask"], decoder_input_ids=start
            ).logits[0]
        logs = torch.log_softmax(logits.double(), dim=-1)
        found.append(float(sum(logs[position, token] for position, token in enumerate(label)).exp()))
    return np.array(found)


@pytest.mark.parametrize("eos", [False, True])
@pytest.mark.parametrize("vocabulary", ["pieces", "bytes"])
@pytest.mark.parametrize("scale", ["five", "yes-no"])
def test_equals_scoring_each_label_alone(folders: dict[str, Path], scale: str, vocabulary: str, eos: bool) -> None:
    folder = folders[vocabulary]
    found = build(folder, SCALES[scale], eos=eos).classify(items_of(TEXTS, TEA))
    for row, text in enumerate(TEXTS):
        expected = exhaustive(folder, SCALES[scale], TEA, text, eos=eos)
        np.testing.assert_allclose(found.probabilities[row], expected / expected.sum(), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found.off_scale[row], 1 - expected.sum(), atol=1e-6)


@pytest.mark.parametrize("scale", ["seven", "likert"])
def test_other_scales_with_bytes(folders: dict[str, Path], scale: str) -> None:
    expected = exhaustive(folders["bytes"], SCALES[scale], FEE, TEXTS[3], eos=False)
    found = build(folders["bytes"], SCALES[scale]).classify([Item(TEXTS[3], FEE)])
    np.testing.assert_allclose(found.probabilities[0], expected / expected.sum(), rtol=1e-5)


def test_a_label_that_begins_another_leaves_out_the_longer_one(folders: dict[str, Path]) -> None:
    one, two, ten, twelve = exhaustive(folders["bytes"], SCALES["prefixes"], TEA, TEXTS[0], eos=False)
    found = build(folders["bytes"], SCALES["prefixes"]).classify([Item(TEXTS[0], TEA)])
    apart = np.array([one - ten - twelve, two, ten, twelve])
    np.testing.assert_allclose(found.probabilities[0], apart / apart.sum(), rtol=1e-5)
    np.testing.assert_allclose(found.off_scale[0], 1 - one - two, atol=1e-6)


def test_the_tokenizer_of_the_test_shares_tokens_as_that_of_t5(folders: dict[str, Path]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folders["pieces"])
    labels = [tokenizer(str(point), add_special_tokens=False).input_ids for point in OpinionScale().points]
    assert [len(label) for label in labels] == [2, 2, 2, 1, 1]
    assert len({label[0] for label in labels[:3]}) == 1


@pytest.mark.parametrize("vocabulary", ["pieces", "bytes"])
def test_batches_of_any_size_agree(folders: dict[str, Path], short: str, vocabulary: str) -> None:
    items = items_of([*TEXTS, *TEXTS], [TEA, FEE] * 5)
    alone = build(folders[vocabulary], prompt=short).classify(items)
    for size in (3, 8):
        classifier = build(folders[vocabulary], prompt=short, batch_size=size)
        found = classifier.classify(items)
        np.testing.assert_allclose(found.probabilities, alone.probabilities, atol=1e-5)
        np.testing.assert_allclose(found.off_scale, alone.off_scale, atol=1e-5)
        turned = classifier.classify(items[::-1])
        np.testing.assert_allclose(turned.probabilities[::-1], found.probabilities, atol=1e-5)
        first = classifier.classify(items[:1])
        np.testing.assert_allclose(first.probabilities[0], found.probabilities[0], atol=1e-5)


def test_texts_and_claims_are_told_apart(folders: dict[str, Path]) -> None:
    found = build(folders["pieces"]).classify(items_of([TEXTS[0], TEXTS[0], TEXTS[1]], [TEA, FEE, TEA]))
    assert np.ptp(found.probabilities, axis=0).max() > 1e-3
    assert len(np.unique(found.off_scale)) == 3


def test_bfloat16_is_near_and_says_so(folders: dict[str, Path]) -> None:
    reference, near = build(folders["pieces"]), build(folders["pieces"], dtype="bfloat16")
    a, b = reference.classify(items_of(TEXTS, TEA)), near.classify(items_of(TEXTS, TEA))
    np.testing.assert_allclose(b.probabilities, a.probabilities, atol=0.05)
    assert not np.array_equal(a.probabilities, b.probabilities)
    # Logits in bfloat16 would put the log-ratios of single tokens on a coarse grid.
    ratios = np.log(b.probabilities[:, 4] / b.probabilities[:, 3])
    assert np.abs(ratios * 64 - np.round(ratios * 64)).max() > 1e-3
    assert near.options == {**reference.options, "dtype": "bfloat16"}


def test_no_value_above_the_threshold(folders: dict[str, Path]) -> None:
    open_ended = build(folders["pieces"]).classify(items_of(TEXTS, TEA))
    assert not np.isnan(open_ended.value).any()
    threshold = float(np.median(open_ended.off_scale))
    strict = build(folders["pieces"], off_scale_threshold=threshold).classify(items_of(TEXTS, TEA))
    np.testing.assert_array_equal(np.isnan(strict.value), open_ended.off_scale > threshold)
    np.testing.assert_array_equal(strict.probabilities, open_ended.probabilities)


# How it is computed


@contextmanager
def watched(classifier: FlanT5Classifier) -> Iterator[dict[str, list[torch.Tensor]]]:
    """The token inputs of every pass of encoder and decoder."""
    model = classifier._scorer._model
    seen: dict[str, list[torch.Tensor]] = {"encoder": [], "decoder": []}
    hooks = [
        part.register_forward_pre_hook(
            lambda _, args, kwargs, calls=calls: calls.append(kwargs["input_ids"]), with_kwargs=True
        )
        for part, calls in ((model.encoder, seen["encoder"]), (model.decoder, seen["decoder"]))
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@pytest.mark.parametrize("size", [1, 4])
def test_one_encoder_pass_and_one_decoder_pass_of_two_tokens_a_batch(folders: dict[str, Path], size: int) -> None:
    classifier = build(folders["pieces"], batch_size=size)
    with watched(classifier) as seen:
        classifier.classify([Item(TEXTS[0].replace("claim", word), TEA) for word in "abcd"[:size]])
    assert [tuple(ids.shape) for ids in seen["decoder"]] == [(size, 2)]
    assert [len(ids) for ids in seen["encoder"]] == [size]


def test_bytes_need_one_row_too_and_an_end_one_for_each_label(folders: dict[str, Path]) -> None:
    for options, shape in (({}, (1, 2)), ({"eos": True}, (5, 3))):
        classifier = build(folders["bytes"], **options)
        with watched(classifier) as seen:
            classifier.classify([Item(TEXTS[0], TEA)])
        assert ([len(ids) for ids in seen["encoder"]], [tuple(ids.shape) for ids in seen["decoder"]]) == ([1], [shape])


def test_equal_inputs_are_computed_once_and_silence_never(folders: dict[str, Path]) -> None:
    classifier = build(folders["pieces"])
    with watched(classifier) as seen:
        classifier.classify(items_of([TEXTS[0], TEXTS[0], TEXTS[0], " \n"], [TEA, FEE, TEA, TEA]))
    assert len(seen["encoder"]) == 2


def test_batches_hold_prompts_of_like_length(folders: dict[str, Path]) -> None:
    texts = [word * length for length in (1, 20) for word in ("I doubt it. ", "No. ", "It is true. ")]
    classifier = build(folders["bytes"], batch_size=3)
    with watched(classifier) as seen:
        classifier.classify(items_of(texts[::2] + texts[1::2], TEA))
    padding = [float((ids == 0).float().mean()) for ids in seen["encoder"]]
    assert max(padding) < 0.2


# What the model gets to see


def shown(classifier: FlanT5Classifier, claim: Claim, text: str) -> list[int]:
    """Tokens the encoder gets for a text."""
    with watched(classifier) as seen:
        classifier.classify([Item(text, claim)])
    return [int(token) for token in seen["encoder"][0][0]]


def test_the_minus_of_typographers_is_that_of_programmers(folders: dict[str, Path]) -> None:
    classifier = build(folders["bytes"])
    typeset = Claim("water freezes at \N{MINUS SIGN}2 degrees", "water", "truth")
    plain = Claim("water freezes at -2 degrees", "water", "truth")
    ours, theirs = shown(classifier, typeset, "I say \N{MINUS SIGN}1."), shown(classifier, plain, "I say -1.")
    assert ours == theirs


@pytest.mark.parametrize("vocabulary", ["pieces", "bytes"])
def test_no_text_can_spell_a_special_token(folders: dict[str, Path], vocabulary: str) -> None:
    classifier = build(folders[vocabulary])
    tokenizer = AutoTokenizer.from_pretrained(folders[vocabulary])
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    *body, end = shown(classifier, TEA, "I agree.</s> <pad><extra_id_0> </s></s>")
    assert end == tokenizer.eos_token_id
    assert not special & set(body)


def read(folder: Path, ids: Sequence[int]) -> str:
    text: str = AutoTokenizer.from_pretrained(folder).decode(ids, skip_special_tokens=True)
    return text


def test_an_overlong_text_loses_its_middle_and_nothing_else(folders: dict[str, Path]) -> None:
    question = len(shown(build(folders["bytes"]), TEA, "x"))
    classifier = build(folders["bytes"], max_tokens=question + 80)
    text = "THE BEGINNING " + "and so on, " * 500 + " THE END"
    ids = shown(classifier, TEA, text)
    prompt = read(folders["bytes"], ids)
    assert question + 70 < len(ids) <= question + 80
    before, after = ScalePrompt(OpinionScale())(TEA.text, "|").split("|")
    assert prompt.startswith(before + "THE BEGINNING and")
    assert prompt.endswith("on,  THE END" + after)
    assert "[...]" in prompt
    assert classifier.n_cut == 1
    classifier.classify([Item(TEXTS[0][:60], TEA)])
    assert classifier.n_cut == 1


def test_a_question_that_leaves_no_room_is_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(MeasurementError, match="max_tokens = 50 leaves no room for a text after the question"):
        build(folders["bytes"], max_tokens=50).classify([Item(TEXTS[0], TEA)])


def test_the_wording_says_what_it_must() -> None:
    prompt = ScalePrompt(OpinionScale())("tea is blue", "I like {{ points }} tea")
    for part in ("tea is blue", "I like {{ points }} tea", "5-point", "-2: strongly negative", "2: strongly positive"):
        assert part in prompt
    assert prompt.rstrip().endswith("-2, -1, 0, 1, 2 and nothing else.")


def test_a_wording_of_ones_own(folders: dict[str, Path], tmp_path: Path) -> None:
    wording = tmp_path / "mine.j2"
    wording.write_text("{{ claim }}? {{ statement }} {% for p, a in anchors %}{{ p }} {{ a }};{% endfor %}")
    classifier = build(folders["bytes"], OpinionScale.of_size(2), prompt=str(wording))
    ids = shown(classifier, TEA, "Yes.")
    assert read(folders["bytes"], ids) == f"{TEA.text}? Yes. -1 negative;1 positive;"
    assert classifier.options["wording"] != build(folders["bytes"]).options["wording"]


@pytest.mark.parametrize(
    ("wording", "message"),
    [
        ("{{ claim }}", r"must contain \{\{ statement \}\} and \{\{ claim \}\}"),
        ("{{ claim }} {{ statement }} {{ topic }}", "'topic' is undefined"),
        ("{{ claim }} {% if %}", "not a valid template"),
        ("{{ claim }} {{ statement.__class__.__mro__ }}", "not a valid template"),
        ("{{ claim + 1 }} {{ statement }}", "cannot be rendered"),
    ],
)
def test_a_wording_that_cannot_be_used(tmp_path: Path, wording: str, message: str) -> None:
    path = tmp_path / "mine.j2"
    path.write_text(wording)
    with pytest.raises(SpecError, match=message):
        load_classifier("flan-t5", prompt=str(path))


# What is on record


def test_options_name_weights_by_content(folders: dict[str, Path], tmp_path: Path) -> None:
    known = build(folders["pieces"]).options
    assert known["model"] == "pieces"
    copied = shutil.copytree(folders["pieces"], tmp_path / "elsewhere")
    assert build(copied).options == {**known, "model": "elsewhere"}
    trained_on = save_model(tmp_path / "other", sentencepiece_tokenizer(), seed=1)
    assert build(trained_on).options["weights"] != known["weights"]
    expected = {"dtype": "float32", "device": "cpu", "batch_size": 1, "max_tokens": 1024, "eos": False}
    assert expected.items() <= known.items()


def test_weights_in_the_cache_of_the_hub_are_found_without_a_network(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    commit = "0123456789" * 4
    snapshot = tmp_path / "models--tiny--flan" / "snapshots" / commit
    shutil.copytree(folders["pieces"], snapshot)
    (tmp_path / "models--tiny--flan" / "refs").mkdir()
    (tmp_path / "models--tiny--flan" / "refs" / "main").write_text(commit)
    for name in ("tiny/flan", str(snapshot)):
        options = load_classifier("flan-t5", model=name, device="cpu").options
        assert (options["model"], options["weights"]) == ("tiny/flan", commit)
    with pytest.raises(MeasurementError, match=f"found '{commit}' instead of 'another'"):
        load_classifier("flan-t5", model="tiny/flan", device="cpu", weights="another")
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(MeasurementError, match="not a folder or in the local cache"):
        load_classifier("flan-t5", model="tiny/flan")


@pytest.mark.parametrize(
    "place", ["run/snapshots/step-1000", "cache/models--tiny--flan/snapshots/step-1000", f"run/snapshots/{'0' * 40}"]
)
def test_only_a_commit_in_the_cache_of_the_hub_stands_for_contents(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    options = build(shutil.copytree(folders["pieces"], tmp_path / place)).options
    assert options["weights"] == build(folders["pieces"]).options["weights"]
    assert options["weights"].startswith("sha256:")
    assert options["model"] == Path(place).name


def test_weights_that_are_not_those_meant_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["pieces"], tmp_path / "mine")
    meant = build(folder).options["weights"]
    assert build(folder, weights=meant).options == build(folder).options
    (folder / "generation_config.json").write_text("{}")
    with pytest.raises(MeasurementError, match=f"found 'sha256:[0-9a-f]{{64}}' instead of '{meant}'"):
        build(folder, weights=meant)


def test_classifiers_share_a_loaded_model(folders: dict[str, Path]) -> None:
    one, other = build(folders["pieces"]), build(folders["pieces"], eos=True)
    assert one._scorer._model is other._scorer._model


# Calibration


def test_calibration_divides_the_prior_out_and_is_on_record(folders: dict[str, Path], tmp_path: Path) -> None:
    plain = build(folders["pieces"])
    pilot = items_of([*TEXTS, *TEXTS], [TEA, FEE] * 5)
    prior = fit_calibration(plain, pilot, date="2024-05-31")
    prior.save(tmp_path / "prior.json")
    calibrated = build(folders["pieces"], calibration=str(tmp_path / "prior.json"))
    before, after = plain.classify(pilot), calibrated.classify(pilot)
    expected = before.probabilities / np.exp(prior.log_prior)
    np.testing.assert_allclose(after.probabilities, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(after.off_scale, before.off_scale)
    assert np.ptp(after.probabilities.mean(axis=0)) < np.ptp(before.probabilities.mean(axis=0))
    assert calibrated.options == {**plain.options, "calibration": prior.digest}


def test_calibration_of_another_instrument_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    fit_calibration(build(folders["pieces"]), [Item(TEXTS[0], TEA)], date="2024-05-31").save(tmp_path / "prior.json")
    for options in ({"eos": True}, {"scale": OpinionScale.of_size(3)}):
        with pytest.raises(SpecError, match="fitted for another instrument"):
            build(folders["pieces"], calibration=str(tmp_path / "prior.json"), **options)
    with pytest.raises(SpecError, match="weights"):
        build(folders["bytes"], calibration=str(tmp_path / "prior.json"))


# What cannot be loaded


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("./gone", "there is no such folder"),
        ("/no/such/folder", "there is no such folder"),
        ("google/flan-t5-small", "not a folder or in the local cache, and the model hub cannot be reached"),
        ("xxl", "not a folder or in the local cache"),
        ("not a name!", "neither a folder nor a name on the model hub"),
    ],
)
def test_weights_that_are_not_there(model: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MeasurementError, match=reason) as caught:
        load_classifier("flan-t5", model=model)
    for alternative in (model, "path of a folder", "small, base, large, xl, xxl", "'chat'"):
        assert alternative in str(caught.value)
    assert "\n" not in str(caught.value)


def test_offline_mode_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(MeasurementError, match="HF_HUB_OFFLINE prevents"):
        load_classifier("flan-t5", model="small")


def _without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _of_another_kind(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))


def _with_a_broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("[]")


def _without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _with_cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def _without_a_decoder(folder: Path) -> None:
    model = T5ForConditionalGeneration.from_pretrained(folder)
    state = {name: value for name, value in model.state_dict().items() if "EncDecAttention" not in name}
    model.save_pretrained(folder, state_dict=state)


def _without_a_tokenizer(folder: Path) -> None:
    for path in folder.glob("*token*"):
        path.unlink()


def _with_a_foreign_tokenizer(folder: Path) -> None:
    ByT5Tokenizer().save_pretrained(folder)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (_without_config, "the folder has no config.json"),
        (_of_another_kind, "it is a model of type 'gpt2'; one of t5, mt5, umt5 is needed"),
        (_with_a_broken_config, "its config.json does not describe a model"),
        (_without_weights, "model.safetensors"),
        (_with_cut_weights, "Safetensor"),
        (_without_a_decoder, "its files lack 4 parameters, among them decoder"),
        (_without_a_tokenizer, "the folder has no tokenizer"),
        (_with_a_foreign_tokenizer, "its tokenizer has tokens that the model does not know"),
    ],
)
def test_folders_that_hold_no_usable_model(folders: dict[str, Path], tmp_path: Path, spoil: Any, reason: str) -> None:
    folder = shutil.copytree(folders["pieces"], tmp_path / "spoilt")
    spoil(folder)
    with pytest.raises(MeasurementError, match=reason) as caught:
        build(folder)
    assert "'chat' needs no weights" in str(caught.value)


def test_weights_that_are_not_numbers(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["pieces"], tmp_path / "spoilt")
    model = T5ForConditionalGeneration.from_pretrained(folder)
    with torch.no_grad():
        model.encoder.final_layer_norm.weight.fill_(torch.nan)
    model.save_pretrained(folder)
    with pytest.raises(MeasurementError, match="returned NaN"):
        build(folder).classify([Item(TEXTS[0], TEA)])


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MeasurementError, match=rf"{package} is missing.*pip install 'opinionsim\[local\]'.*'chat'"):
        load_classifier("flan-t5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float16"}, "T5 overflows in float16; valid: float32, bfloat16"),
        ({"dtype": "int8"}, "unknown number format 'int8'; valid: float32, bfloat16"),
        ({"device": "abacus"}, "unknown device 'abacus'; valid: auto, cpu, cuda, cuda:N"),
        ({"device": "meta"}, "unknown device 'meta'"),
        ({"device": "cuda:7"}, "'cuda:7' is not on this machine; valid here: auto, cpu"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1; got 0"),
        ({"max_tokens": 1.5}, "max_tokens must be a whole number of at least 1; got 1.5"),
        ({"off_scale_threshold": 2}, "off_scale_threshold must be from 0 to 1; got 2"),
        ({"off_scale_threshold": "half"}, "off_scale_threshold must be a number from 0 to 1; got 'half'"),
        ({"eos": "yes"}, "eos must be true or false; got 'yes'"),
        ({"model": 7}, "model must be text; got 7"),
        ({"revision": 1234}, "revision must be text; got 1234"),
        ({"weights": 1234}, "weights must be text; got 1234"),
        ({"prompt": "gone.j2"}, "prompt: gone.j2: no such file"),
        ({"calibration": "gone.json"}, "gone.json: no such file"),
        ({"temperature": 0.5}, "unknown option 'temperature'"),
    ],
)
def test_options_that_are_not_valid(options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SpecError, match=message):
        load_classifier("flan-t5", **options)


def test_a_label_that_cannot_be_spelled(folders: dict[str, Path]) -> None:
    with pytest.raises(MeasurementError, match="cannot spell the point 6"):
        build(folders["pieces"], OpinionScale((6, 7)))


# The command line


def classify(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["classify", "-", "--claim", TEA.text, *arguments], input="\n".join(TEXTS))


def test_options_on_the_command_line(folders: dict[str, Path]) -> None:
    given = {"model": folders["bytes"], "off_scale_threshold": 1, "eos": "true", "device": "cpu"}
    options = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
    result = classify("--classifier", "flan-t5", *options, "--json")
    assert result.exit_code == 0, result.stderr
    expected = build(folders["bytes"], eos=True).classify(items_of([text.strip() for text in TEXTS], TEA))
    assert [row["value"] for row in json.loads(result.stdout)] == expected.value.tolist()


def test_texts_that_were_cut_are_reported(folders: dict[str, Path]) -> None:
    room = len(shown(build(folders["bytes"]), TEA, "x")) + 150
    options = ["--set", f"model={folders['bytes']}", "--set", f"max_tokens={room}"]
    result = classify("--classifier", "flan-t5", *options, "--json")
    assert result.exit_code == 0, result.stderr
    assert "texts too long for the classifier, coded without their middle: 1" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "model"], "--set 'model': must have the form NAME=VALUE"),
        (["--set", "eos=[1"], "--set eos"),
        (["--set", "eos=true", "--set", "eos=false"], "--set eos is given twice"),
        (["--set", "scale=5"], "unknown option 'scale' for classifier 'flan-t5'"),
        (["--set", "modell=large"], "unknown option 'modell' for classifier 'flan-t5'; valid options: model"),
        (["--set", "model=./gone"], "there is no such folder"),
        (["--set", "dtype=float16"], "T5 overflows in float16"),
    ],
)
def test_options_on_the_command_line_that_are_not_valid(options: list[str], message: str) -> None:
    result = classify("--classifier", "flan-t5", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in " ".join(result.stderr.split())
