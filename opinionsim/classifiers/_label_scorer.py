"""Label masses from an encoder-decoder model, with one encoder pass and one short decoder pass for each batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any

import numpy as np

from opinionsim.classifiers._label_trie import LabelTrie
from opinionsim.errors import MeasurementError

#: Batched prompts are padded to multiples of this many tokens.
_STRIDE = 32


class LabelScorer:
    """Scores the labels of a trie after prompts.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        An encoder-decoder language model in evaluation mode, such as ``T5ForConditionalGeneration``.
    trie : LabelTrie
        The labels.
    batch_size : int
        Number of prompts in one pass.

    Notes
    -----
    Each prompt is always computed in a batch of the same shape: `batch_size` rows, and its length, rounded up, as
    columns. Copies fill missing rows. Kernels choose their order of summation by the shape of their input, so with
    varying shapes a result would depend on the other prompts of the batch.
    """

    def __init__(self, model: Any, trie: LabelTrie, *, batch_size: int = 1) -> None:
        self._model = model
        self._trie = trie
        self._batch_size = batch_size
        start = _start_token(model)
        longest = max(map(len, trie.rows))
        # Tokens after a row's own have no effect: the decoder is causal.
        self._rows = [[start, *row, *[start] * (longest - len(row))] for row in trie.rows]

    def log_masses(self, prompts: Sequence[Sequence[int]]) -> np.ndarray:
        """Log-mass of each label after each prompt.

        Parameters
        ----------
        prompts : sequence of sequence of int
            Token ids, including the end token.

        Returns
        -------
        ndarray (n, number of labels)
            As :meth:`LabelTrie.log_masses`; a row depends only on its prompt.

        Raises
        ------
        MeasurementError
            If the model returns NaN.
        """
        found = np.empty((len(prompts), len(self._trie)))
        for width, members in self._batches(prompts):
            found[members] = self._trie.log_masses(self._pass([prompts[i] for i in members], width))
        return found

    def _batches(self, prompts: Sequence[Sequence[int]]) -> Iterator[tuple[int, list[int]]]:
        """Padded lengths and the prompts computed together, shortest first."""
        stride = 1 if self._batch_size == 1 else _STRIDE
        widths = [-(-len(prompt) // stride) * stride for prompt in prompts]
        for width, group in groupby(sorted(range(len(prompts)), key=widths.__getitem__), key=widths.__getitem__):
            members = list(group)
            for start in range(0, len(members), self._batch_size):
                yield width, members[start : start + self._batch_size]

    def _pass(self, prompts: list[Sequence[int]], width: int) -> np.ndarray:
        """Log-probabilities of the trie's cells, shape (len(prompts), number of cells)."""
        torch = import_module("torch")
        device = self._model.device
        filled = [prompts[min(row, len(prompts) - 1)] for row in range(self._batch_size)]
        ids = torch.tensor([[*prompt, *[0] * (width - len(prompt))] for prompt in filled], device=device)
        mask = torch.tensor([[1] * len(prompt) + [0] * (width - len(prompt)) for prompt in filled], device=device)
        rows = torch.tensor(self._rows, device=device)
        with torch.inference_mode():
            states = self._model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
            logits = self._model(
                encoder_outputs=(states.repeat_interleave(len(rows), dim=0),),
                attention_mask=mask.repeat_interleave(len(rows), dim=0),
                decoder_input_ids=rows.repeat(len(filled), 1),
                use_cache=False,
            ).logits
            every = torch.log_softmax(logits.float(), dim=-1).view(len(filled), *rows.shape, -1)
            row, position, token = torch.tensor(self._trie.cells, device=device).T
            cells = every[:, row, position, token].double().cpu().numpy()[: len(prompts)]
        if np.isnan(cells).any():
            raise MeasurementError("the classifier's model returned NaN; check its weights and number format")
        return np.asarray(cells)


def _start_token(model: Any) -> int:
    """The token that decoder inputs open with."""
    for config in (model.config, model.generation_config):
        for name in ("decoder_start_token_id", "pad_token_id"):
            token = getattr(config, name, None)
            if token is not None:
                return int(token)
    raise MeasurementError("the classifier's model has no start token for decoding")
