"""Training of the reward model, which predicts how far a person agrees with a statement."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from opinionsim.consensus.evaluation._reward_model import RewardModel
from opinionsim.consensus.training._fine_tuning import Training, begin, finish, load_base
from opinionsim.consensus.training._training_data import preference_pairs, read_ratings, split_ratings
from opinionsim.errors import MeasurementError, SpecError
from opinionsim.foundation.documents import validate


class RewardTraining(Training):
    """Settings of :func:`train_reward`. Bakker et al. 2022 (D5): learning rate 2e-6, batches of 8, last 25 layers."""

    last_layers: int | None = Field(None, ge=0)
    """Number of last layers to train, in addition to the new head. The others keep their weights. None trains all."""
    min_difference: float = Field(1.0, ge=0)
    """Two ratings form a pair if they differ by more than this number of points."""
    save_every: int = Field(100, ge=1)
    """Number of steps between checkpoints; an interrupted training continues from the last one."""


def train_reward(
    data: pd.DataFrame | str | Path, base: str | Path, out: str | Path, *, progress: bool = False, **settings: Any
) -> dict[str, Any]:
    """Train a model that predicts how far a person agrees with a statement, from ratings of agreement.

    If you call it again with the same arguments, an interrupted training continues from its last checkpoint, and a
    finished one returns its card. On the CPU with one thread, weights are equal with and without interruption.

    Parameters
    ----------
    data : DataFrame, str or Path
        Ratings by reliable raters (D3), as for :func:`read_ratings`.
    base : str or Path
        Folder, or name on the model hub, of any model that ``transformers`` loads as a sequence classifier, with its
        tokenizer and weights as safetensors.
    out : str or Path
        Folder for the weights, the tokenizer and ``card.json``; new, empty, or of the same training.
    progress : bool
        Show a bar on stderr.
    **settings
        Fields of :class:`RewardTraining`.

    Returns
    -------
    dict
        The card: `format`, `base`, `data` (digest of the pairs), `settings`, `max_tokens`, `evidence`, numbers of
        pairs, of held-out questions and of shortened inputs, `accuracy` (share of held-out pairs whose preferred
        statement has the higher reward; a tie is an error; chance is 0.5), `package`, and `fingerprint`, which
        identifies the weights in runs.

    Raises
    ------
    SpecError
        Before training, if data, a setting or the base is not valid, or a side of the split has no pair.
    StoreError
        If `out` contains something else.
    MeasurementError
        If a package of the extra ``local`` is missing, an input does not fit the model, or rewards are no longer
        numbers.

    Notes
    -----
    The method follows Bakker et al. 2022 (D5): pairs of statements that one person rated more than one point apart on
    one question, cross-entropy of their order, and a split by question.
    """
    chosen = validate(RewardTraining, settings, "settings")
    sides = split_ratings(read_ratings(data, "agreement"), chosen.split_by, chosen.validation, chosen.seed)
    train, held_out = (preference_pairs(rows, chosen.min_difference) for rows in sides)
    if not (train and held_out):
        raise SpecError(
            "data: on one side of the split, no person's ratings of agreement on a question are more than "
            f"{chosen.min_difference:g} apart; give more ratings, or another split or min_difference"
        )
    found = load_base(
        base, "AutoModelForSequenceClassification", chosen, num_labels=1, ignore_mismatched_sizes=True, dtype="float32"
    )
    reward = RewardModel(found.model, found.tokenizer, found.max_tokens)
    # All pairs are tokenized now: a question that does not fit raises an error before the first step.
    tokens = [tuple(reward.tokens(*pair[:2], each) for each in pair[2:]) for pair in [*train, *held_out]]
    if chosen.last_layers is not None:
        _freeze(found.model, chosen.last_layers)
    others = {"n_questions": len({pair.question for pair in held_out}), "n_cut": reward.n_cut}
    folder, card, finished = begin(out, RewardModel.FORMAT, found, chosen, sides, (train, held_out), **others)
    if finished:
        return card

    from opinionsim.consensus.training import _trainers

    trainer = _trainers.PairTrainer(
        model=found.model,
        args=_trainers.arguments(chosen, folder, progress, save_strategy="steps", save_steps=chosen.save_every),
        train_dataset=tokens[: len(train)],
        data_collator=partial(_trainers.pair_batch, found.tokenizer.pad_token_id),
    )
    # The loss is a mean over one batch of a step: the Trainer divides it by their number.
    trainer.model_accepts_loss_kwargs = False
    _trainers.fit(trainer)
    found.model.eval().save_pretrained(folder)
    found.tokenizer.save_pretrained(folder)
    score = cache(reward.score)
    rewards = np.array([[score(*pair[:2], each) for each in pair[2:]] for pair in held_out])
    if not np.isfinite(rewards).all():
        raise MeasurementError("train_reward: the training diverged: its rewards are not numbers; lower learning_rate")
    return finish(folder, card, accuracy=float((rewards[:, 0] > rewards[:, 1]).mean()))


def _freeze(model: Any, last_layers: int) -> None:
    """Keep the weights of all but the last layers and the head."""
    stacks = [module for module in model.base_model.modules() if type(module).__name__ == "ModuleList"]
    layers: list[Any] = list(max(stacks, key=len, default=[]))
    if last_layers > len(layers):
        raise SpecError(f"last_layers: the base has {len(layers)} layers; got {last_layers}")
    model.base_model.requires_grad_(False)
    for layer in layers[len(layers) - last_layers :]:
        layer.requires_grad_(True)
