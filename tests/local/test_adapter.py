"""A PEFT adapter is merged into a local model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from opinionsim.errors import SpecError
from opinionsim.local._decoder import Sampling, ToDecode, load_decoder
from opinionsim.local._hugging_face import HuggingFaceOptions, load
from tests.support.tiny import save_tiny

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")


def test_an_adapter_is_merged_and_enters_the_identity(tmp_path: Path) -> None:
    folder, place = save_tiny(tmp_path / "tiny"), tmp_path / "adapter"
    torch.manual_seed(0)
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config).eval()
    adapted.save_pretrained(place)

    plain = load(str(folder), max_tokens=8)
    model = load(str(folder), max_tokens=8, adapter=str(place))
    assert model.model.rpartition("@")[2] != plain.model.rpartition("@")[2]

    decoder = load_decoder(str(folder), HuggingFaceOptions(device="cpu", adapter=str(place)), Sampling(max_tokens=8))
    question = ToDecode(({"role": "user", "content": "Is the earth flat?"},), None)
    (answer,) = decoder.answer([question], lambda row: False)
    ids = decoder._tokenizer(decoder.rendered(question.messages), add_special_tokens=False)["input_ids"]
    expected = list(ids)
    for _ in range(answer.output_tokens):
        expected.append(int(adapted(input_ids=torch.tensor([expected])).logits[0, -1].argmax()))
    assert answer.text == decoder._tokenizer.decode(expected[len(ids) :], skip_special_tokens=True)


def test_an_adapter_that_is_none_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"^model\.options: adapter '.*nowhere' cannot be loaded: .*adapter_config"):
        load(str(save_tiny(tmp_path / "tiny")), adapter=str(tmp_path / "nowhere"))
