"""The public names: one list per room, found lazily, and old names with a warning."""

import subprocess
import sys

import pytest

import craftmaps

CONTRACT = [
    "OnePassClassifier",
    "OnePassRegressor",
    "KernelPCA",
    "NormalEquations",
    "Window",
    "TableEncoder",
    "ScaledMap",
    "LevelsMap",
    "MetricMap",
    "ImageMap",
    "RandomMaclaurin",
    "TensorSketch",
    "CraftMap",
    "FourierFeatures",
    "Nystroem",
    "CompositionalMap",
    "Polynomial",
    "Exponential",
    "VovkReal",
    "VovkInfinite",
    "DotProduct",
    "Gaussian",
    "Laplacian",
    "Cauchy",
    "Matern",
    "Composed",
    "load",
    "export_onnx",
]


def test_all_public_names_are_there_and_documented():
    assert set(CONTRACT) <= set(craftmaps.__all__) <= set(dir(craftmaps))
    for name in craftmaps.__all__:
        assert getattr(craftmaps, name).__doc__


def test_a_star_import_gives_all_of_them():
    names: dict[str, object] = {}
    exec("from craftmaps import *", names)
    assert set(craftmaps.__all__) <= names.keys()


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'craftmaps' has no attribute 'Kernels'"):
        _ = craftmaps.Kernels


def test_the_package_is_imported_without_scikit_learn():
    program = "import sys, craftmaps; print('sklearn' in sys.modules, craftmaps.__version__)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", craftmaps.__version__]


@pytest.mark.parametrize("name", ["export_onnx", "register_converters"])
def test_the_old_module_of_onnx_names_its_new_place(name):
    from craftmaps.models import onnx

    with pytest.warns(FutureWarning, match=rf"moved to craftmaps\.models\.onnx\.{name}"):
        assert getattr(craftmaps.deploy, name) is getattr(onnx, name)
    with pytest.warns(FutureWarning, match="removed in 0.3"):
        exec(f"from craftmaps.deploy import {name}")
    with pytest.raises(AttributeError, match=r"'craftmaps\.deploy' has no attribute 'export'"):
        _ = craftmaps.deploy.export
