"""Other tools for densities, intervals and drift, each in the way its documentation shows."""

import time
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline


def exact_process(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian process of scikit-learn, its width and noise by marginal likelihood."""
    kernel = RBF(np.sqrt(X.shape[1])) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, random_state=0).fit(X, y)
    mean, std = process.predict(new, return_std=True)
    return mean, std


def svgp(
    X: np.ndarray, y: np.ndarray, new: np.ndarray, budget: float, n_points: int = 512
) -> tuple[np.ndarray, np.ndarray]:
    """A stochastic variational process of GPyTorch, trained by Adam for so many CPU seconds."""
    import gpytorch
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows, targets = torch.as_tensor(X), torch.as_tensor(y.astype(np.float32))

    class Process(gpytorch.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            points = rows[torch.randperm(len(rows))[:n_points]].clone()
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
            strategy = gpytorch.variational.VariationalStrategy(
                self, points, distribution, learn_inducing_locations=True
            )
            super().__init__(strategy)
            self.mean = gpytorch.means.ConstantMean()
            inside = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=rows.shape[1])
            self.covariance = gpytorch.kernels.ScaleKernel(inside)

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))

    process, likelihood = Process(), gpytorch.likelihoods.GaussianLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, process, num_data=len(rows))
    optimizer = torch.optim.Adam([*process.parameters(), *likelihood.parameters()], lr=0.01)
    end = time.process_time() + budget
    while time.process_time() < end:
        for some in torch.randperm(len(rows)).split(1024):
            optimizer.zero_grad()
            loss = -bound(process(rows[some]), targets[some])
            loss.backward()
            optimizer.step()
            if time.process_time() >= end:
                break
    process.eval()
    likelihood.eval()
    with torch.no_grad():
        parts = [likelihood(process(part)) for part in torch.as_tensor(new).split(1024)]
    mean = np.concatenate([part.mean.numpy() for part in parts])
    return mean, np.concatenate([part.stddev.numpy() for part in parts])


def mapie_interval(
    feature_map: Any, X: np.ndarray, y: np.ndarray, new: np.ndarray, coverage: float
) -> np.ndarray:
    """Intervals of MAPIE: CV+ with five folds, around ridge regression on the same features."""
    from mapie.regression import CrossConformalRegressor

    model = make_pipeline(feature_map, RidgeCV(np.logspace(-4, 2, 13)))
    conformal = CrossConformalRegressor(model, confidence_level=coverage, cv=5)
    conformal.fit_conformalize(X, y)
    _, ends = conformal.predict_interval(new)
    return np.asarray(ends[:, :, 0])


def permutation_test(
    A: np.ndarray, B: np.ndarray, gamma: float, n_permutations: int, rng: np.random.Generator
) -> float:
    """The p-value of the exact kernel's discrepancy, by exchanging rows of the two samples."""
    rows = np.concatenate([A, B])
    gram = rbf_kernel(rows, gamma=gamma)

    def statistic(signs: np.ndarray) -> Any:
        return np.einsum("ij,ij->j", signs, gram @ signs)

    sides = np.r_[np.full(len(A), 1 / len(A)), np.full(len(B), -1 / len(B))]
    shuffled = np.stack([rng.permutation(sides) for _ in range(n_permutations)], axis=1)
    larger = (statistic(shuffled) >= statistic(sides[:, None])).sum()
    return float((1 + larger) / (1 + n_permutations))
