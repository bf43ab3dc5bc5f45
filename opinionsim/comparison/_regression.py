"""Multinomial regression by itself, the least that agents should beat in guessing what a respondent answers."""

from __future__ import annotations

import numpy as np

#: Weight of the squared coefficients, which keeps those of rare combinations finite.
_RIDGE = 0.5


def fit_multinomial(x: np.ndarray, y: np.ndarray, weights: np.ndarray, n_options: int) -> np.ndarray:
    """Coefficients of a multinomial logistic regression.

    Parameters
    ----------
    x : ndarray of float, shape (n, p)
        Predictors, without a constant.
    y : ndarray of int, shape (n,)
        Option that each respondent chose, from 0.
    weights : ndarray of float, shape (n,)
        Weight of each respondent, none negative, some positive; only their ratios count.
    n_options : int
        Number of options k.

    Returns
    -------
    ndarray, shape (p + 1, k)
        Coefficients of each option, that of the constant first; only differences between options have a meaning. They
        maximise sum w log P(y | x) less half the sum of squared coefficients, the constants left out, with weights of
        mean 1.
    """
    from scipy.optimize import minimize
    from scipy.special import log_softmax

    design = np.column_stack([np.ones(len(x)), x])
    w = weights / weights.mean()
    chosen = np.eye(n_options)[y]
    shape = (design.shape[1], n_options)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        b = flat.reshape(shape)
        logs = log_softmax(design @ b, axis=1)
        slope = design.T @ (w[:, None] * (np.exp(logs) - chosen))
        slope[1:] += 2 * _RIDGE * b[1:]
        return float(-(w @ (chosen * logs).sum(axis=1)) + _RIDGE * (b[1:] ** 2).sum()), slope.ravel()

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    return np.asarray(found.x).reshape(shape)


def predict_multinomial(coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Probability of each option, shape (n, k), for coefficients of :func:`fit_multinomial`."""
    from scipy.special import softmax

    return np.asarray(softmax(coefficients[0] + x @ coefficients[1:], axis=1))
