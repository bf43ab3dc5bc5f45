"""Common parts of both trainings: settings, base model, folder and card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from opinionsim import __version__
from opinionsim.errors import SpecError, StoreError, in_short, packages
from opinionsim.foundation.documents import DocumentModel
from opinionsim.foundation.provenance import CARD, PLAN, digest_of_weights
from opinionsim.foundation.streams import canonical_json, digest

#: Checkpoints of an unfinished training, by step.
CHECKPOINTS = "checkpoints"


class Training(DocumentModel):
    """Settings of both trainings; the card records all of them."""

    learning_rate: float = Field(2e-6, gt=0, le=1)
    """Highest learning rate; reached after the warm-up, then lowered along a cosine to 0."""
    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the steps over which the learning rate rises from 0."""
    epochs: int = Field(1, ge=1)
    """Maximum number of passes over the data."""
    batch_size: int = Field(8, ge=1)
    """Number of examples in a batch."""
    accumulate: int = Field(1, ge=1)
    """Number of batches in one step."""
    max_tokens: int = Field(2048, ge=8)
    """Maximum length of an input in tokens, or the model's limit if that is lower."""
    split_by: Literal["question", "topic"] = "question"
    """Unit that a split keeps whole. With `topic`, validation uses only topics without training data."""
    validation: float = Field(0.2, gt=0, lt=1)
    """Share of questions or topics to validate on, if the data contain no split."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of all draws: the split, new weights, the order of the data, dropout."""
    device: Literal["auto", "cpu"] = "auto"
    """`auto` (CUDA devices if there are any) or `cpu`."""


class Base(NamedTuple):
    """A model to train, with its tokenizer, maximum input length and identity.

    The identity consists of its name and the digest of a folder's files, or its commit on the hub.
    """

    model: Any
    tokenizer: Any
    max_tokens: int
    identity: dict[str, str]


def load_base(base: str | Path, auto: str, settings: Training, **options: Any) -> Base:
    """Load the base and seed all later random draws.

    Parameters
    ----------
    base : str or Path
        Folder, or name on the model hub.
    auto : str
        Class of ``transformers`` that loads the model.
    settings : Training
        Settings of the training.
    **options
        Arguments for the class.

    Returns
    -------
    Base
        On the CPU; its tokenizer has a padding token.

    Raises
    ------
    SpecError
        If the base cannot be loaded.
    MeasurementError
        If a package of the extra ``local`` is missing.
    """
    transformers, *_ = packages("training", "local", "transformers", "torch", "accelerate", "peft")
    transformers.set_seed(settings.seed)
    folder = Path(base).expanduser()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
        # Other weight formats are unpickled, which runs code.
        model = getattr(transformers, auto).from_pretrained(str(folder), use_safetensors=True, **options)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token or tokenizer.sep_token
        config = model.config.get_text_config()
        config.pad_token_id = int(tokenizer.pad_token_id)
    except Exception as error:  # of many libraries: files, formats, the hub, the network
        raise SpecError(
            f"base: {str(base)!r} cannot be loaded: {in_short(error)}; valid: a folder, or a name on the model hub, "
            f"with config.json, a tokenizer, and weights as safetensors that {auto} loads"
        ) from error
    longest = getattr(config, "max_position_embeddings", None) or settings.max_tokens
    identity = {"name": str(base), "weights": str(getattr(model.config, "_commit_hash", None))}
    if folder.is_dir():
        identity = {"name": folder.resolve().name, "weights": digest_of_weights(folder)}
    return Base(model, tokenizer, int(min(settings.max_tokens, longest, tokenizer.model_max_length)), identity)


def begin(
    out: str | Path, form: str, base: Base, settings: Training, sides: Any, examples: Sequence[Any], **others: Any
) -> tuple[Path, dict[str, Any], bool]:
    """Create the folder of a training, or find an existing one.

    Parameters
    ----------
    out : str or Path
        The folder.
    form : str
        Format of the trained model.
    base : Base
        The base of the training.
    settings : Training
        Its settings.
    sides : sequence of DataFrame
        The ratings to train on and to validate on, with a column for evidence if known.
    examples : sequence of sequence
        The examples made from them, as JSON values.
    **others
        Further fields of the card.

    Returns
    -------
    folder : Path
        The folder.
    card : dict
        The card; without results before the training has finished.
    finished : bool
        Whether the training has already finished.

    Raises
    ------
    StoreError
        If the folder contains another training or other files, or if files of a finished training have changed.
    """
    plan = {
        "format": form,
        "base": base.identity,
        "data": digest(canonical_json(examples)),
        "evidence": sorted({str(kind) for table in sides for kind in table.get("evidence", ())}),
        "settings": settings.model_dump(mode="json"),
        "max_tokens": base.max_tokens,
        "n_train": len(examples[0]),
        "n_validation": len(examples[1]),
        **others,
    }
    folder = Path(out).expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        _write(folder / PLAN, plan)
    try:
        stored = json.loads((folder / PLAN).read_bytes())
        card = json.loads((folder / CARD).read_bytes()) if (folder / CARD).exists() else {}
    except (OSError, ValueError):
        raise StoreError(f"out: {folder} is not empty and contains no training; give another folder") from None
    if stored != plan:
        differing = ", ".join(key for key in plan if stored.get(key) != plan[key])
        raise StoreError(f"out: {folder} contains a training with different {differing}; give another folder")
    if card and card["fingerprint"] != digest_of_weights(folder):
        raise StoreError(f"out: the files of {folder} changed after the training; give another folder")
    return folder, card or plan, bool(card)


def finish(folder: Path, plan: dict[str, Any], **results: Any) -> dict[str, Any]:
    """Write the card next to the weights as the last file, remove the checkpoints, and return the card."""
    card = {**plan, **results, "package": __version__, "fingerprint": digest_of_weights(folder)}
    _write(folder / CARD, card)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return card


def _write(file: Path, content: dict[str, Any]) -> None:
    """Write a mapping as a complete file, or write nothing."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(file)
