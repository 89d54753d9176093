"""Least squares on shifted labels, as its definition reads: every forecaster solves its ridge problem."""

from __future__ import annotations

import numpy as np


def forecast(X, y, x, lam, label_bound):
    """The Vovk-Azoury-Warmuth forecast after rows X with labels y: ridge regression with the row x of label 0."""
    grown = np.vstack([X, x])
    A = lam * np.eye(x.size) + grown.T @ grown
    return float(np.clip(x @ np.linalg.solve(A, X.T @ y), -label_bound, label_bound))


def shifted_labels(X, y, lam, label_bound):
    """The labels that are learned, and the forecasts."""
    labels, forecasts = np.empty(len(y)), np.empty(len(y))
    for t in range(len(y)):
        forecasts[t] = forecast(X[:t], labels[:t], X[t], lam, label_bound)
        labels[t] = 2 * y[t] - forecasts[t]
    return labels, forecasts


def mean_forecast(X, y, x, lam, label_bound):
    """The mean over the forecasters of all rows."""
    labels, _ = shifted_labels(X, y, lam, label_bound)
    return np.mean([forecast(X[:t], labels[:t], x, lam, label_bound) for t in range(len(y))])
