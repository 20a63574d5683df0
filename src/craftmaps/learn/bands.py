"""Predictions of numbers, and how far off they may be."""

from typing import Any

import numpy as np

from craftmaps.learn.intervals import Conformal, check_coverage
from craftmaps.learn.one_pass import OnePass
from craftmaps.learn.solvers.solution import limited, warn_of_far_predictions
from craftmaps.learn.uncertainty import Posterior, learned
from craftmaps.validation import check_count, generator


class Bands(OnePass):
    """The predictions of a regressor, with standard deviations, intervals and draws."""

    _one_target: bool
    _n_targets: int

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets, and optionally their standard deviations.

        A warning is raised if a prediction is more than ten standard deviations of the training
        targets away from their mean. With feature_map="auto" such a prediction is also limited to
        that distance, or to the range of the training targets if that is larger.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to also return the standard deviation of the target of each row, including the
            noise. It is s sqrt(1 + h) for the leverage h of the row and the noise s, the root mean
            square of leave-one-out residuals. The first call factors the system, which takes
            E^3 / 3 operations and 8 E^2 bytes for E features. Then a row takes 2 E^2 operations.

        Returns
        -------
        predicted : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape, if `return_std`
        """
        if not return_std:
            predicted = np.concatenate(list(self._predicted(X)))
            limits = self._limits()
            if limits is None:
                warn_of_far_predictions(predicted, self.solution_)
            return self._shaped(limited(predicted, limits))
        posterior, conformal = self._uncertainty()
        self._known(posterior)
        predicted, factors = self._with_factors(X)
        std = factors[:, None] * conformal.deviation().astype(factors.dtype)
        return self._shaped(predicted), self._shaped(std)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return an interval for each row that contains its target with the given probability.

        The interval is f(x) +- q sqrt(1 + h) for the leverage h of the row. q is the quantile of
        the leave-one-out residuals of up to 1,024 rows of the pass, each divided by its own
        sqrt(1 + h). The noise may have any distribution, as long as new rows come from the same
        source as the training rows. For losses other than the squared loss, q is computed from
        held-out rows, with h = 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability, on average over rows. The interval is infinite if the sample has fewer
            than coverage / (1 - coverage) rows.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2), lower and upper ends
        """
        check_coverage(coverage)
        _, conformal = self._uncertainty()
        predicted, factors = self._with_factors(X)
        half = factors[:, None] * conformal.bound(coverage).astype(factors.dtype)
        ends = np.stack([predicted - half, predicted + half], axis=-1)
        return np.asarray(ends[:, 0] if self._one_target else ends)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw functions from the posterior and evaluate them at the rows of X, without noise.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        n_samples : int, default=1
            Number of functions.
        random_state : int, RandomState instance, Generator or None, default=0
            The same int gives the same functions for any rows.

        Returns
        -------
        ndarray of shape (n_rows, n_samples) or (n_rows, n_targets, n_samples)
        """
        check_count("n_samples", n_samples)
        posterior, conformal = self._uncertainty()
        posterior, noise = self._known(posterior), conformal.deviation()
        rng = generator(random_state)
        drawn = [posterior.draws(n_samples, rng) for _ in range(self._n_targets)]
        solution, parts = self.solution_, []
        for Z in self._features(X):
            centred = Z - posterior.centre
            spread = [
                s * (centred @ W + offsets) for s, (W, offsets) in zip(noise, drawn, strict=True)
            ]
            mean = Z @ solution.coef + solution.intercept
            parts.append((mean[:, :, None] + np.stack(spread, axis=1)).astype(Z.dtype))
        return self._shaped(np.concatenate(parts))

    @property
    def _residual_factor(self) -> float:
        """Ratio of the residuals of new rows to the residuals of rows that are left out."""
        return 1.0

    def _limits(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The least and the largest prediction of each target, if predictions are limited."""
        return None

    def _shaped(self, columns: np.ndarray) -> np.ndarray:
        return np.asarray(columns[:, 0] if self._one_target else columns)

    def _with_factors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions, and sqrt(1 + h) times the residual factor for each row."""
        (posterior, conformal), solution = self._uncertainty(), self.solution_
        predicted, factors = [], []
        for Z in self._features(X):
            predicted.append(solution.predict(Z))
            h = self._known(posterior).leverages(Z) if conformal.studentized else np.zeros(len(Z))
            factors.append((self._residual_factor * np.sqrt(1 + h)).astype(Z.dtype))
        return limited(np.concatenate(predicted), self._limits()), np.concatenate(factors)

    def _uncertainty(self, *, single: bool = False) -> tuple[Posterior | None, Conformal]:
        stream = self._begun()
        if stream.conformal is None:
            if stream._closed:
                raise ValueError(
                    "this model was saved without its uncertainty; save it with uncertainty=True "
                    "or resumable=True."
                )
            with self._draft(same_rows=True) as draft:
                stream = draft._stream
                if stream.conformal is None:  # another thread may have computed it meanwhile
                    stream.posterior, stream.conformal = learned(draft)
        posterior, conformal = stream.posterior, stream.conformal
        return posterior.single() if single and posterior is not None else posterior, conformal

    def _known(self, posterior: Posterior | None) -> Posterior:
        if posterior is None:
            raise ValueError(
                "standard deviations are available for the squared loss, but not with "
                "feature_map='local', which 'auto' may choose without a budget, and not if the "
                "system is solved by iteration, as with more than 16,384 rows and even more "
                "features; use predict_interval."
            )
        return posterior
