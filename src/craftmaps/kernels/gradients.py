"""Gradients of kernel models, for learning a metric."""

import numpy as np

from craftmaps.kernels import Gaussian, Laplacian, Matern


def gradient_products(kernel: object, X: np.ndarray, coef: np.ndarray, full: bool) -> np.ndarray:
    """Return the sum of grad f grad f^T over rows and targets up to a factor, or its diagonal.

    The gradients of f(x) = sum_i c_i k(x, x_i) are evaluated at the rows x_i.
    """
    if isinstance(kernel, Laplacian):
        by_column = _laplacian(X, coef, kernel)
        squares = np.einsum("ij,ij->i", by_column, by_column)
        return by_column @ by_column.T if full else np.asarray(squares)
    total = np.zeros((X.shape[1], X.shape[1]) if full else X.shape[1])
    slopes = _slopes(kernel, X)
    for c in coef.T:
        weights = slopes * c
        gradient = weights.sum(axis=1)[:, None] * X - weights @ X
        total += gradient.T @ gradient if full else np.einsum("ij,ij->j", gradient, gradient)
    return np.asarray(total)


def _laplacian(X: np.ndarray, coef: np.ndarray, kernel: Laplacian) -> np.ndarray:
    """Return derivatives by each column, of shape (n_columns, n_rows * n_targets)."""
    K = np.asarray(kernel(X))
    signed = (K * np.sign(column[:, None] - column) for column in X.T)
    return np.array([(product @ coef).ravel() for product in signed])


def _slopes(kernel: object, X: np.ndarray) -> np.ndarray:
    """Return s(|x - y|) with grad_x k(x, y) = -s(|x - y|) (x - y), up to a factor."""
    if isinstance(kernel, Gaussian):
        return np.asarray(kernel(X))
    assert isinstance(kernel, Matern)
    if kernel.nu == 0.5:
        K = np.asarray(kernel(X))
        distances = -np.log(np.maximum(K, 1e-300))
        np.fill_diagonal(distances, 1.0)
        slopes = K / np.maximum(distances, 1e-12)
        np.fill_diagonal(slopes, 0.0)
        return np.asarray(slopes)
    # The derivative of a Matern kernel with nu is -s times a Matern kernel with nu - 1.
    lower = kernel.nu - 1
    gamma = float(kernel.gamma) * np.sqrt(kernel.nu / lower)
    return np.asarray(Matern(nu=lower, gamma=gamma)(X))
