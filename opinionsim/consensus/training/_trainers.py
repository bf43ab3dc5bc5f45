"""The Trainer of transformers, as used in both trainings.

Importing this module imports torch and transformers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import logsigmoid
from transformers import Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from opinionsim.consensus.training._fine_tuning import CHECKPOINTS, Training

#: State of a training; the last file of a checkpoint that is written.
_STATE = "trainer_state.json"
#: Label of tokens that no loss counts, as PyTorch's cross-entropy has it.
_UNCOUNTED = -100


class PairTrainer(Trainer):
    """Trains a model with one output to score the first half of a batch higher than the second half."""

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, *_: Any, **__: Any) -> Any:
        """The mean of -log sigmoid(reward of the preferred statement - reward of the other) over pairs (D5)."""
        outputs = model(**inputs)
        preferred, other = outputs.logits[:, 0].chunk(2)
        loss = -logsigmoid(preferred - other).mean()
        return (loss, outputs) if return_outputs else loss


def pair_batch(padding: int, pairs: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
    """A batch of pairs of token ids: the preferred texts first, then the others in the same order."""
    return _padded(padding, [better for better, _ in pairs] + [worse for _, worse in pairs])


def statement_batch(padding: int, examples: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
    """A batch of prompts, each followed by its statement; the loss counts only tokens of statements."""
    batch = _padded(padding, [prompt + statement for prompt, statement in examples])
    counted = [[_UNCOUNTED] * len(prompt) + statement for prompt, statement in examples]
    return {**batch, "labels": _padded(_UNCOUNTED, counted)["input_ids"]}


def _padded(padding: int, rows: Sequence[list[int]]) -> dict[str, Any]:
    width = max(map(len, rows))
    return {
        "input_ids": torch.tensor([[*row, *[padding] * (width - len(row))] for row in rows]),
        "attention_mask": torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows]),
    }


def negative_log_likelihoods(logits: Any, labels: Any) -> Any:
    """Negative log-likelihood of each row, summed over its counted tokens, and their number; shape (rows, 2)."""
    scores, wanted = logits[:, :-1].float(), labels[:, 1:]
    each = torch.nn.functional.cross_entropy(scores.transpose(1, 2), wanted, ignore_index=_UNCOUNTED, reduction="none")
    return torch.stack([each.sum(dim=1), (wanted != _UNCOUNTED).sum(dim=1)], dim=1)


def perplexity(evaluated: Any) -> dict[str, float]:
    """The exponential of the mean negative log-likelihood of a token, over all tokens."""
    total, tokens = torch.as_tensor(evaluated.predictions).double().sum(dim=0)
    return {"perplexity": float(torch.exp(total / tokens))}


class Bar(ProgressCallback):
    """A progress bar on stderr; the bar of transformers also writes numbers to stdout."""

    def on_log(self, *_: Any, **__: Any) -> None:
        """Write nothing."""


def arguments(settings: Training, folder: Path, progress: bool, **others: Any) -> TrainingArguments:
    """Arguments for the Trainer: seeded, silent, with checkpoints in the folder of the training."""
    return TrainingArguments(
        output_dir=str(folder / CHECKPOINTS),
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=settings.warmup,
        num_train_epochs=settings.epochs,
        seed=settings.seed,
        save_total_limit=2,
        restore_callback_states_from_checkpoint=True,
        use_cpu=settings.device == "cpu",
        dataloader_pin_memory=False,
        logging_strategy="no",
        disable_tqdm=not progress,
        **others,
    )


def fit(trainer: Trainer) -> dict[str, float]:
    """Train to the end, starting from the last complete checkpoint if there is one.

    Parameters
    ----------
    trainer : Trainer
        The Trainer before its first step.

    Returns
    -------
    dict
        Results of the evaluation before the first step; empty without evaluation data.
    """
    trainer.remove_callback(PrinterCallback)
    if trainer.pop_callback(ProgressCallback):
        trainer.add_callback(Bar)
    before = {} if trainer.eval_dataset is None else trainer.evaluate()
    states = Path(str(trainer.args.output_dir)).glob(f"{PREFIX_CHECKPOINT_DIR}-*/{_STATE}")
    last = max(states, key=lambda each: int(each.parent.name.rpartition("-")[2]), default=None)
    if last is not None:
        state = json.loads(last.read_bytes())
        if state["stateful_callbacks"]["TrainerControl"]["args"]["should_training_stop"]:
            # It was interrupted after its last epoch: nothing is left but to take the best weights.
            trainer.args.num_train_epochs = round(state["epoch"])
        # The folder may have been moved since.
        best = last.parent.with_name(f"{PREFIX_CHECKPOINT_DIR}-{state['best_global_step']}")
        last.write_text(json.dumps({**state, "best_model_checkpoint": str(best)}))
    trainer.train(resume_from_checkpoint=None if last is None else str(last.parent))
    return before
