"""Finds and loads the weights and the tokenizer of an encoder-decoder model of the T5 family."""

from __future__ import annotations

import copy
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from opinionsim.errors import MeasurementError, in_short, packages
from opinionsim.foundation.provenance import device_named, digest_of_weights
from opinionsim.llm import NotLoaded, is_planning, require_weights

#: Short names and the published weights they stand for.
_SIZES = {size: f"google/flan-t5-{size}" for size in ("small", "base", "large", "xl", "xxl")}
#: Number formats that T5 works in.
DTYPES = ("float32", "bfloat16")
#: Model types (as ``config.json`` has them) with T5's way of decoding.
_FAMILY = ("t5", "mt5", "umt5")
#: Files of tokenizers; without any of them, the library would create an empty tokenizer.
_VOCABULARIES = {"tokenizer.json", "tokenizer_config.json", "spiece.model"}
#: Name of the folder of a model at a commit in the hub's cache.
_COMMIT = re.compile("[0-9a-f]{40}")
#: Longest wait for the first answer of the model hub, seconds.
_HUB_TIMEOUT_S = 10.0

#: Models in use, so that classifiers that differ in other options share one copy.
_in_use: WeakValueDictionary[tuple[str, ...], Any] = WeakValueDictionary()


class Weights(NamedTuple):
    """A loaded model."""

    model: Any
    """``T5ForConditionalGeneration`` or a similar model, in evaluation mode on its device."""
    tokenizer: Any
    name: str
    """Name on the model hub, or of the local folder."""
    digest: str
    """Commit on the model hub, or ``sha256:`` and the digest of a local folder's files."""


def load_weights(name: str, revision: str | None, dtype: str, device: str, expected: str | None = None) -> Weights:
    """Load a model from a folder, the local cache of the model hub or, failing both, the hub itself.

    Parameters
    ----------
    name : str
        ``small``, ``base``, ``large``, ``xl`` or ``xxl`` for Flan-T5; a name on the hub; a folder.
    revision : str, optional
        Branch, tag or commit on the hub; default ``main``, preferably from the local cache.
    dtype : str
        One of :data:`DTYPES`. In bfloat16, logits are still computed in float32.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    expected : str, optional
        Commit or digest that the weights must have.

    Raises
    ------
    SpecError
        If an argument is not valid.
    MeasurementError
        If a package is missing, or the name has no usable weights or other weights than expected.
    """
    what, otherwise = f"classifier 'flan-t5' with the weights {name!r}", ", or use the classifier 'chat'"
    if is_planning():
        require_weights(what, _SIZES.get(name, name), revision, "torch", "transformers", otherwise=otherwise)
        raise NotLoaded
    torch, transformers = packages(what, "local", "torch", "transformers", otherwise=otherwise)
    where = device_named(torch, device)
    folder, shown, digest = _locate(_SIZES.get(name, name), revision)
    if expected is not None and digest != expected:
        raise MeasurementError(
            f"classifier 'flan-t5': the weights {name!r} do not match the option weights: found {digest!r} instead of "
            f"{expected!r}; set the path or the revision of the intended weights, or correct weights"
        )
    _require_t5(folder, name)
    key = (str(folder), digest, dtype, str(where))
    model = _in_use.get(key)
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        if model is None:
            model = _model(torch, transformers, folder, dtype, name).to(where)
            _in_use[key] = model
    except MeasurementError:
        raise
    except Exception as error:  # each file format has errors of its own
        raise _unusable(name, f"{type(error).__name__}: {in_short(error)}") from error
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise _unusable(name, "its tokenizer has tokens that the model does not know")
    return Weights(model, tokenizer, shown, digest)


def _locate(name: str, revision: str | None) -> tuple[Path, str, str]:
    """Folder with the files, name to show, and identity of the content."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        folder = folder.resolve()
        if name_on_hub := _of_the_cache(folder):
            return folder, name_on_hub, folder.name
        return folder, folder.name, digest_of_weights(folder)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name or not name.strip("/ "):
        raise _unusable(name, "there is no such folder")
    folder = _cached(name, revision) or _downloaded(name, revision)
    return folder, name, folder.name


def _of_the_cache(folder: Path) -> str:
    """Name on the hub of a folder in its local cache, whose commit identifies the content; else empty."""
    cache = Path(import_module("huggingface_hub.constants").HF_HUB_CACHE).expanduser().resolve()
    try:
        model, snapshots, commit = folder.relative_to(cache).parts
    except ValueError:  # elsewhere, or at another depth
        return ""
    if not model.startswith("models--") or snapshots != "snapshots" or not _COMMIT.fullmatch(commit):
        return ""
    return model.removeprefix("models--").replace("--", "/")


def _cached(name: str, revision: str | None) -> Path | None:
    """The folder of a model in the local cache, None where it is missing or incomplete."""
    hub = import_module("huggingface_hub")
    try:
        found = hub.try_to_load_from_cache(name, "config.json", revision=revision)
    except hub.errors.HFValidationError:
        raise _unusable(name, "it is neither a folder nor a name on the model hub") from None
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    files = {file.name for file in folder.iterdir()}
    indices = [folder / file for file in files if file.endswith((".safetensors.index.json", ".bin.index.json"))]
    needed = {part for index in indices for part in json.loads(index.read_bytes())["weight_map"].values()}
    whole = needed <= files if needed else any(file.endswith((".safetensors", ".bin")) for file in files)
    return folder if whole and files & _VOCABULARIES else None


def _downloaded(name: str, revision: str | None) -> Path:
    """The folder of a model fetched from the hub; a first request without retries makes it fail fast."""
    hub = import_module("huggingface_hub")
    try:
        info = hub.HfApi().model_info(name, revision=revision, timeout=_HUB_TIMEOUT_S)
        names = [file.rfilename for file in info.siblings or ()]
        kind = "*.safetensors" if any(file.endswith(".safetensors") for file in names) else "*.bin"
        return Path(hub.snapshot_download(name, revision=info.sha, allow_patterns=["*.json", "*.model", "*.txt", kind]))
    except hub.errors.RepositoryNotFoundError as error:
        raise _unusable(name, "the model hub has no such model, or you have no access to it") from error
    except hub.errors.RevisionNotFoundError as error:
        raise _unusable(name, f"the model on the hub has no revision {revision!r}") from error
    except hub.errors.OfflineModeIsEnabled as error:
        raise _unusable(
            name, "it is not a folder or in the local cache, and HF_HUB_OFFLINE prevents a download"
        ) from error
    except Exception as error:  # network failures have many types
        reason = (
            f"it is not a folder or in the local cache, and the model hub cannot be reached ({type(error).__name__})"
        )
        raise _unusable(name, reason) from error


def _require_t5(folder: Path, name: str) -> None:
    """Refuse a model of another family before its weights are read."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        kind = config["model_type"]
    except FileNotFoundError:
        raise _unusable(name, "the folder has no config.json") from None
    except (ValueError, KeyError, TypeError):
        raise _unusable(name, "its config.json does not describe a model") from None
    if kind not in _FAMILY:
        raise _unusable(name, f"it is a model of type {kind!r}; one of {', '.join(_FAMILY)} is needed")
    if not any((folder / file).is_file() for file in _VOCABULARIES):
        raise _unusable(name, "the folder has no tokenizer")


def _model(torch: Any, transformers: Any, folder: Path, dtype: str, name: str) -> Any:
    """The model on the CPU, ready to score."""
    model, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        folder, dtype=getattr(torch, dtype), local_files_only=True, output_loading_info=True
    )
    # Parameters that the files lack would be drawn at random.
    if report["missing_keys"] or report["mismatched_keys"]:
        lacking = [*sorted(report["missing_keys"]), *(str(key) for key in report["mismatched_keys"])]
        raise _unusable(name, f"its files lack {len(lacking)} parameters, among them {lacking[0]}")
    if dtype != "float32":
        sharpen(model)
    return model.eval()


def sharpen(model: Any) -> None:
    """Let a model in another number format compute its logits in float32.

    bfloat16 keeps 8 bits: logits of size 20 would fall on multiples of 1/8, and labels would tie.
    """
    model.lm_head = copy.deepcopy(model.lm_head).float()
    model.lm_head.register_forward_pre_hook(lambda _, inputs: (inputs[0].float(),))


def _unusable(name: str, reason: str) -> MeasurementError:
    sizes = ", ".join(_SIZES)
    return MeasurementError(
        f"classifier 'flan-t5': the weights {name!r} cannot be loaded: {reason}; "
        f"valid for model: the path of a folder with weights and tokenizer, a size of Flan-T5 ({sizes}), or a name "
        "on the model hub; the classifier 'chat' needs no weights"
    )
