"""Write the model files of this folder with craftmaps 0.1.0, which is at commit a741d25.

Each file has its rows, and what the model gave for them, beside it.
"""

from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator

from craftmaps import (
    Composed,
    CompositionalMap,
    CraftMap,
    FourierFeatures,
    Gaussian,
    ImageMap,
    Laplacian,
    Matern,
    MetricMap,
    Nystroem,
    OnePassClassifier,
    OnePassRegressor,
    Polynomial,
    RandomMaclaurin,
    ScaledMap,
    TensorSketch,
)

HERE = Path(__file__).parent
rng = np.random.default_rng(0)
X = rng.random((60, 16))
y = np.array(["ape", "bee", "cat", "dog"])[(X[:, 0] * 4).astype(int)]
t = np.stack([X[:, 0] * X[:, 1], X[:, 2]], axis=1)
inner = CraftMap(Polynomial(3), n_components=12, random_state=0)
MODELS = {
    "maclaurin": RandomMaclaurin("exp", 20, random_state=0),
    "maclaurin-h01": RandomMaclaurin(Polynomial(3), 40, h01=True, random_state=0),
    "maclaurin-gaussian": RandomMaclaurin(Polynomial(3), 20, projection="gaussian", random_state=0),
    "maclaurin-complex": RandomMaclaurin(Polynomial(3), 20, complex_to_real=True, random_state=0),
    "tensor-sketch": TensorSketch(n_components=16, random_state=0),
    "craft-fold": inner,
    "craft-srht": CraftMap(Polynomial(3), 12, n_up=50, down="srht", random_state=0),
    "craft-sparse": CraftMap(Polynomial(3), 12, n_up=50, down="sparse", random_state=0),
    "craft-principal": CraftMap(Polynomial(3), 12, n_up=50, down="principal", random_state=0),
    "craft-sketch": CraftMap(Polynomial(3), 12, up="tensor-sketch", random_state=0),
    "craft-append": CraftMap(Polynomial(3), 40, h01="append", random_state=0),
    "craft-auto": CraftMap("auto", 12, random_state=0),
    "fourier-iid": FourierFeatures(Laplacian(), 16, sampling="iid", random_state=0),
    "fourier-structured": FourierFeatures(Gaussian(), 16, sampling="structured", random_state=0),
    "fourier-fastfood": FourierFeatures(Gaussian(), 16, sampling="fastfood", random_state=0),
    "nystroem": Nystroem(Matern(nu=2.5), 10, landmarks="rpcholesky", random_state=0),
    "nystroem-name": Nystroem("sigmoid", 10, kernel_params={"gamma": 0.1}, random_state=0),
    "composed": CompositionalMap(Composed(Polynomial(2), Gaussian()), 12, random_state=0),
    "scaled": ScaledMap(inner, columns="standard"),
    "metric": MetricMap(inner),
    "image": ImageMap(inner, cells=2),
    "classifier": OnePassClassifier(inner),
    "classifier-codes": OnePassClassifier(inner, codes="random", n_bits=9, random_state=0),
    "classifier-discriminant": OnePassClassifier(inner, decoding="discriminant"),
    "classifier-frozen": OnePassClassifier(FrozenEstimator(inner)),
    "regressor": OnePassRegressor(inner),
    "regressor-folds": OnePassRegressor(Nystroem("poly", 10, whiten=False), alpha=[0.1, 1.0]),
}


def main() -> None:
    for name, model in MODELS.items():
        targets = t if isinstance(model, OnePassRegressor) else y
        if name == "classifier-frozen":
            inner.fit(X)
        model.fit(X, targets)
        save = {"resumable": True} if name in ("classifier", "regressor-folds") else {}
        model.save(HERE / f"{name}.craft", **save)
        if isinstance(model, OnePassClassifier):
            gives = {"predict_proba": model.predict_proba(X)}
        elif isinstance(model, OnePassRegressor):
            gives = {"predict": model.predict(X)}
        else:
            gives = {"transform": model.transform(X)}
        np.savez_compressed(HERE / f"{name}.npz", X=X, y=targets, **gives)


if __name__ == "__main__":
    main()
