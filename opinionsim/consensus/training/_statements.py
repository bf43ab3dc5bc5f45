"""Training of the statement model: adapters that make a language model draft like the best-rated statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from opinionsim.consensus._consensus import ConsensusInteraction
from opinionsim.consensus.training._fine_tuning import Base, Training, begin, finish, load_base
from opinionsim.consensus.training._training_data import (
    StatementExample,
    read_ratings,
    split_ratings,
    statement_examples,
)
from opinionsim.engine import conditions_of_others
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.documents import validate
from opinionsim.foundation.streams import digest, stream
from opinionsim.messages import Message, broken_up, printable
from opinionsim.opinions import OpinionScale
from opinionsim.prompts import Addressee, Past, PromptPack, load_pack
from opinionsim.schedules import ActSpec

#: A prompt, made of a question and opinions.
Prompt = Callable[[str, Sequence[str]], str]

#: Marks of quotation that a draft may stand in, opening and closing.
_QUOTES = ('""', "''", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb", "``")


class StatementTraining(Training):
    """Settings of :func:`train_statements`.

    Bakker et al. 2022 (D4) fine-tuned a model of 70 billion weights with a learning rate of 2.5e-7 and batches of 256.
    Adapters have few weights, which begin at 0, and need larger rates and smaller batches. The defaults are common
    values, not those of the source.
    """

    learning_rate: float = Field(1e-4, gt=0, le=1)
    """Highest learning rate; reached after the warm-up, then lowered along a cosine to 0."""
    epochs: int = Field(10, ge=1)
    """Maximum number of passes over the data."""
    train_above: float = Field(5.0, ge=1, lt=7)
    """Training uses statements with a mean quality above this (D4: 5)."""
    validate_above: float = Field(6.0, ge=1, lt=7)
    """Validation uses statements with a mean quality above this (D4: 6)."""
    patience: int = Field(1, ge=1)
    """Training ends after this many successive epochs without a lower perplexity and keeps the best weights."""
    rank: int = Field(16, ge=1)
    """Rank of the adapters (LoRA), which are scaled by 2."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of the base's weights; adapters use float32."""


def statement_prompt(question: str, opinions: Sequence[str]) -> str:
    """Return the prompt for training on statements.

    Runs use the same prompt if their task is the question and their drafters have the style ``completion``.

    Parameters
    ----------
    question : str
        The question.
    opinions : sequence of str
        The citizens' opinions, in the order of the prompt.

    Returns
    -------
    str
        Text that ends where the statement begins.
    """
    act, wording = _drafting()
    told = Addressee(OpinionScale(), conditions_of_others(False), task=printable(question), role="mediator")
    prompts = wording.for_agent(told)
    return prompts.task(act, [Message(printable(text), act="state") for text in opinions], Past()).content


@cache
def _drafting() -> tuple[ActSpec, PromptPack]:
    """The act of drafting in the style ``completion``, and its wording."""
    fields = {"kind": "consensus", "drafters": [{"count": 2, "style": "completion"}]}
    act = ConsensusInteraction.read(fields).acts["draft"]
    return act, load_pack(ConsensusInteraction.prompts).bind([act], (), conditions_of_others(False))


def cleaned_statement(text: str, prompt: str = "") -> str:
    """Remove from a draft what does not belong to the statement (D4).

    Parameters
    ----------
    text : str
        A reply of a completion model, or a recorded statement.
    prompt : str
        The prompt. If the draft repeats its text or its last line, the function removes it.

    Returns
    -------
    str
        The first line, without repeated prompt, enclosing quotation marks and white space; may be empty.
    """
    line = text.strip()
    for repeated in filter(None, (prompt.strip(), prompt.strip().rpartition("\n")[2])):
        line = line.removeprefix(repeated).strip()
    line = line.partition("\n")[0].strip()
    while len(line) > 1 and line[0] + line[-1] in _QUOTES:
        line = line[1:-1].strip()
    return line


def train_statements(
    data: pd.DataFrame | str | Path,
    base: str | Path,
    out: str | Path,
    *,
    prompt: Prompt = statement_prompt,
    progress: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """Train adapters of a causal language model on statements of high quality.

    A model with a chat template reads the prompt as a user's message and answers with the statement; other models
    continue the prompt. If you call it again with the same arguments, an interrupted training continues after its last
    complete epoch, and a finished one returns its card. On the CPU with one thread, weights are equal with and without
    interruption.

    Parameters
    ----------
    data : DataFrame, str or Path
        Ratings of quality, as for :func:`read_ratings`; a column `reliable` selects the raters that count (D3).
    base : str or Path
        Folder, or name on the model hub, of a causal model with its tokenizer and weights as safetensors.
    out : str or Path
        Folder for the adapters and ``card.json``; new, empty, or of the same training. Runs use them with
        ``model: {name: "hf:BASE", options: {adapter: OUT}}``.
    prompt : callable
        Returns the prompt for a question and opinions; default :func:`statement_prompt`.
    progress : bool
        Show a bar on stderr.
    **settings
        Fields of :class:`StatementTraining`.

    Returns
    -------
    dict
        The card: `format`, `base`, `data` (digest of the examples), `prompt` (digest), `settings`, `max_tokens`,
        `evidence`, numbers of examples and of those too long, `perplexity_of_base` and `perplexity` (of a token of
        held-out statements, before and after), `epochs` carried out, `package`, and `fingerprint`, whose first 12
        characters runs name.

    Raises
    ------
    SpecError
        If the data, a setting or the base is not valid, or a side of the split has no statement above its threshold.
        Raised before training.
    StoreError
        If `out` contains something else.
    MeasurementError
        If a package of the extra ``local`` is missing, or the training diverges.

    Notes
    -----
    The method follows Bakker et al. 2022 (D4): cleaned statements, loss only on their tokens, opinions in a new order
    in each epoch, and early stopping by perplexity. The source does not use adapters.
    """
    chosen = validate(StatementTraining, settings, "settings")
    sides = split_ratings(read_ratings(data, "quality"), chosen.split_by, chosen.validation, chosen.seed)
    train = _above(chosen.train_above, statement_examples(sides[0]), prompt, "train")
    held_out = _above(chosen.validate_above, statement_examples(sides[1]), prompt, "validation")
    found = load_base(base, "AutoModelForCausalLM", chosen, dtype=chosen.dtype)
    if found.tokenizer.eos_token_id is None:
        raise SpecError(f"base: the tokenizer of {str(base)!r} has no end-of-text token; use another base")
    encoded = [_Examples(each, found, prompt, chosen.seed) for each in (train, held_out)]
    others = {
        "prompt": digest(prompt("QUESTION", ("OPINION A", "OPINION B"))),
        "n_too_long": len(train) + len(held_out) - sum(map(len, encoded)),
    }
    folder, card, finished = begin(out, "opinionsim-statements-1", found, chosen, sides, (train, held_out), **others)
    if finished:
        return card

    import peft
    from transformers import EarlyStoppingCallback, Trainer

    from opinionsim.consensus.training import _trainers

    adapters = peft.LoraConfig(
        r=chosen.rank, lora_alpha=2 * chosen.rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    found.model.config.use_cache = False
    adapted = peft.get_peft_model(found.model, adapters)
    trainer = Trainer(
        model=adapted,
        args=_trainers.arguments(
            chosen,
            folder,
            progress,
            save_strategy="epoch",
            eval_strategy="epoch",
            load_best_model_at_end=True,
            metric_for_best_model="perplexity",
            greater_is_better=False,
            label_names=["labels"],
        ),
        train_dataset=encoded[0],
        eval_dataset=encoded[1],
        data_collator=partial(_trainers.statement_batch, found.tokenizer.pad_token_id),
        compute_metrics=_trainers.perplexity,
        preprocess_logits_for_metrics=_trainers.negative_log_likelihoods,
        callbacks=[EarlyStoppingCallback(chosen.patience)],
    )
    before = _trainers.fit(trainer)["eval_perplexity"]
    after = trainer.evaluate()["eval_perplexity"]
    if not after < float("inf"):
        raise MeasurementError(f"train_statements: the training diverged: perplexity {after}; lower learning_rate")
    adapted.save_pretrained(str(folder))
    return finish(folder, card, perplexity_of_base=before, perplexity=after, epochs=round(trainer.state.epoch or 0))


def _above(least: float, examples: Sequence[StatementExample], prompt: Prompt, side: str) -> list[StatementExample]:
    """The examples of higher quality, their statements cleaned."""
    good = [
        each._replace(statement=cleaned_statement(each.statement, prompt(each.question, each.opinions)))
        for each in examples
        if each.quality > least
    ]
    if not any(each.statement for each in good):
        best = max((each.quality for each in examples), default=float("nan"))
        raise SpecError(
            f"data: none of {len(examples)} statements in {side!r} has a mean quality above {least:g}; the best has "
            f"{best:.2f}. Give more ratings, or another split or threshold"
        )
    return [each for each in good if each.statement]


class _Examples:
    """Prompts and statements as token ids, with the opinions in an order drawn for each epoch.

    Parameters
    ----------
    examples : sequence of StatementExample
        Those that are too long are left out.
    base : Base
        What reads them.
    prompt : callable
        Makes the prompt of a question and opinions.
    seed : int
        Seed of the orders.
    """

    def __init__(self, examples: Sequence[StatementExample], base: Base, prompt: Prompt, seed: int) -> None:
        self._epoch = 0
        self._tokenizer, self._prompt, self._seed = base.tokenizer, prompt, seed
        self._plain = broken_up(str(each) for each in base.tokenizer.added_tokens_decoder.values() if each.special)
        self._examples = list(examples)
        lengths = [sum(map(len, self[place])) for place in range(len(examples))]
        self._examples = [each for each, length in zip(examples, lengths, strict=True) if length <= base.max_tokens]
        if not self._examples:
            raise SpecError(f"max_tokens: every example is longer than {base.max_tokens}; the shortest: {min(lengths)}")

    def __len__(self) -> int:
        return len(self._examples)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch, from 0; loaders of data call it."""
        self._epoch = epoch

    def __getitem__(self, place: int) -> tuple[list[int], list[int]]:
        example = self._examples[place]
        order = stream(self._seed, "opinions in training", 0, self._epoch, place).permutation(len(example.opinions))
        text = self._plain(printable(self._prompt(example.question, [example.opinions[each] for each in order])))
        statement = self._plain(printable(example.statement))
        if self._tokenizer.chat_template:
            message = {"role": "user", "content": text}
            text = self._tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True)
        else:
            statement = f" {statement}"
        prompt = self._tokenizer(text, add_special_tokens=not self._tokenizer.chat_template)["input_ids"]
        ids = self._tokenizer(statement, add_special_tokens=False)["input_ids"]
        return prompt, [*ids, self._tokenizer.eos_token_id]
