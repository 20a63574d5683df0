"""A model file holds the declared fields of its objects, and no other."""

import numpy as np
import pytest
from scipy import sparse

import craftmaps
from craftmaps import (
    CraftMap,
    Gaussian,
    Nystroem,
    OnePassClassifier,
    Polynomial,
    RandomMaclaurin,
    TensorSketch,
)
from craftmaps.maps.base import FeatureMap
from craftmaps.storage import array_file, storable
from craftmaps.storage.fields import fields_of, matches

X = np.random.default_rng(0).random((40, 6)) / 6
LABELS = np.arange(40) % 3


@pytest.fixture
def altered(tmp_path):
    """Loads a model after a function has altered the state of its file."""

    def load(model, alter, **options):
        path = tmp_path / "model.craft"
        model.save(path, **options)
        header, arrays = array_file.read(path, "model")
        alter(header["model"]["state"], arrays)
        array_file.write(path, "model", header, arrays)
        return craftmaps.load(path)

    return load


@pytest.mark.parametrize("name", ["_check_stored", "_fill", "transform", "n_columns", "__class__"])
def test_no_field_hides_a_method(altered, name):
    def alter(state, arrays):
        state[name] = True

    with pytest.raises(ValueError, match=f"TensorSketch has no field '{name}'"):
        altered(TensorSketch(n_components=8, random_state=0).fit(X), alter)


def test_a_method_of_a_part_is_not_hidden_either(altered):
    def alter(state, arrays):
        state["_products"]["state"]["fill"] = True

    with pytest.raises(ValueError, match="HadamardProducts has no field 'fill'"):
        altered(CraftMap(Polynomial(3), 20, random_state=0).fit(X), alter)


def test_a_learner_that_is_narrower_than_its_map_is_refused(altered):
    def alter(state, arrays):
        state["_stream"]["state"]["n_features"] = 5
        for name in ("_stream._Z", "_stream.sample.Z"):
            arrays[name] = arrays[name][:, :5]
        coef = arrays["_stream.solution.coef"]  # stored transposed
        arrays["_stream.solution.coef"] = coef[:, :5]

    model = OnePassClassifier(TensorSketch(n_components=8, random_state=0)).fit(X, LABELS)
    with pytest.raises(ValueError, match="a map of 5 features"):
        altered(model, alter)


def test_a_map_in_a_learner_is_checked_whatever_it_lacks(altered):
    def alter(state, arrays):
        del state["feature_map_"]["state"]["_n_features_out"]

    model = OnePassClassifier(TensorSketch(n_components=8, random_state=0)).fit(X, LABELS)
    with pytest.raises(ValueError, match="TensorSketch lacks its field '_n_features_out'"):
        altered(model, alter)


@pytest.mark.parametrize("zeros", [False, True])
def test_sums_without_a_weight_are_refused(altered, zeros):
    """Predictions for rows that are left out would be divided by the weight."""

    def alter(state, arrays):
        sums = state["_stream"]["state"]["folds"]["list"][0]["state"]
        sums["metadata"]["dict"] = [
            (name, 0.0 if name == "weight" else value) for name, value in sums["metadata"]["dict"]
        ]
        if zeros:  # as sums of rows without weight are
            for name in [name for name in arrays if name.startswith("_stream.folds")]:
                arrays[name] = np.zeros_like(arrays[name])

    model = OnePassClassifier(TensorSketch(n_components=8, random_state=0)).fit(X, LABELS)
    expected = "a weight of the rows that were learned" if zeros else "no hessian without a weight"
    with pytest.raises(ValueError, match=expected):
        altered(model, alter, resumable=True)


@pytest.mark.parametrize("dtype", ["uint64", "int8"])
@pytest.mark.parametrize("path", [["sample", "state", "labels"], ["_y"]])
def test_labels_of_a_type_that_further_labels_do_not_fit_are_refused(altered, path, dtype):
    """Beside int64, uint64 becomes floating point; in int8, class 200 would be class -56."""

    def alter(state, arrays):
        place = state["_stream"]["state"]
        for key in path:
            place = place[key]
        place["dtype"] = dtype
        arrays[place["array"]] = arrays[place["array"]].astype(dtype)

    wide = OnePassClassifier(TensorSketch(n_components=64, random_state=0)).fit(X, LABELS)
    with pytest.raises(ValueError, match="of type int64"):  # rows are kept if they are few
        altered(wide, alter, resumable=True)


def test_sums_of_small_indices_do_not_wrap_around(altered):
    def alter(state, arrays):
        state["_products"]["state"]["column"]["dtype"] = "uint8"
        state["_products"]["state"]["length"]["dtype"] = "uint8"
        arrays["_products.column"] = np.full_like(arrays["_products.column"], 245, np.uint8)

    feature_map = CraftMap(Polynomial(3), 20, n_up=60, h01="none", random_state=0)
    with pytest.raises(ValueError, match="do not fit together"):
        altered(feature_map.fit(X), alter)


@pytest.mark.parametrize("name", ["rotations", "blocks", "degree", "length", "column", "offset"])
def test_indices_of_an_unsigned_type_are_refused(altered, name):
    """Loops combine them with int64, and uint64 beside int64 becomes floating point."""

    def alter(state, arrays):
        state["_products"]["state"][name]["dtype"] = "uint8"

    feature_map = RandomMaclaurin(Polynomial(3), 25, complex_to_real=True, random_state=0)
    with pytest.raises(ValueError, match=f"do not fit together.*{name}"):
        altered(feature_map.fit(X), alter)


def test_rows_of_a_sparse_matrix_that_overlap_are_refused(altered):
    def alter(state, arrays):
        arrays["landmarks_.indptr"] = np.array([0, 3, 5, 2, 1, 0], np.int32)
        for name in ("data", "indices"):
            arrays[f"landmarks_.{name}"] = arrays[f"landmarks_.{name}"][:0]

    feature_map = Nystroem(Gaussian(0.5), 5, random_state=0).fit(sparse.csr_array(X))
    with pytest.raises(ValueError, match="rows of a sparse matrix"):
        altered(feature_map, alter)


def test_a_kernel_that_depends_on_rows_is_refused(altered):
    def alter(state, arrays):
        state["kernel_"]["state"]["gamma"] = "scale"

    with pytest.raises(ValueError, match="gamma that depends on the rows"):
        altered(Nystroem(Gaussian(0.5), 5, random_state=0).fit(X), alter)


def test_rows_of_a_sparse_matrix_that_end_before_they_begin_are_refused(altered):
    def alter(state, arrays):
        arrays["landmarks_.indptr"] = arrays["landmarks_.indptr"].copy()
        arrays["landmarks_.indptr"][-1] = 0  # SciPy takes the matrix to be empty

    feature_map = Nystroem(Gaussian(0.5), 5, random_state=0).fit(sparse.csr_array(X))
    with pytest.raises(ValueError, match="that rows take all entries"):
        altered(feature_map, alter)


@storable
class Tripled(FeatureMap):
    """A map from outside of the package."""

    factor_: float
    note_: str | None = None

    def __init__(self, n_components=6, random_state=None):
        self.n_components = n_components
        self.random_state = random_state

    def _draw(self, X, *rest):
        self.factor_ = 3.0
        return {"factor_": 3.0}

    def _fill(self, X, out):
        out[:] = X * self.factor_


def test_a_class_from_outside_is_stored_by_what_it_declares(tmp_path):
    Tripled().fit(X).save(tmp_path / "model.craft")
    assert np.array_equal(craftmaps.load(tmp_path / "model.craft").transform(X), 3 * X)


def test_an_attribute_that_is_not_declared_is_noticed(tmp_path):
    feature_map = Tripled().fit(X)
    feature_map.forgotten_ = 1
    with pytest.warns(UserWarning, match="forgotten_ is not stored, because Tripled does not"):
        feature_map.save(tmp_path / "model.craft")
    assert not hasattr(craftmaps.load(tmp_path / "model.craft"), "forgotten_")


def test_a_value_of_another_type_than_declared_is_not_written(tmp_path):
    feature_map = Tripled().fit(X)
    feature_map.note_ = 5
    with pytest.raises(TypeError, match="note_ is a int, and Tripled declares it as"):
        feature_map.save(tmp_path / "model.craft")


def test_what_scikit_learn_sets_is_stored(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    Tripled().set_output(transform="pandas").fit(frame).save(tmp_path / "model.craft")
    loaded = craftmaps.load(tmp_path / "model.craft")
    assert isinstance(loaded.transform(frame), pandas.DataFrame)
    assert loaded.feature_names_in_.tolist() == list("abcdef")


def test_fields_of_a_class():
    fields = fields_of(Tripled)
    assert {"n_components", "random_state", "factor_", "note_", "n_features_in_"} <= fields.keys()
    assert not {"transform", "fit", "save", "kernel"} & fields.keys()


@pytest.mark.parametrize(
    ("value", "kind", "holds"),
    [
        (1, int, True),
        (True, int, False),
        (np.int64(1), int, True),
        (1, float, True),
        ("1", float, False),
        (None, float | None, True),
        ([1, 2], list[int], True),
        ([1, "2"], list[int], False),
        ((1.0, 2.0), tuple[float, ...], True),
        ((1, 2), tuple[int, int], True),
        ((1, 2, 3), tuple[int, int], False),
        ({1: np.zeros(2)}, dict[int, np.ndarray], True),
        ({"1": np.zeros(2)}, dict[int, np.ndarray], False),
        (np.zeros(2), np.ndarray, True),
        ([0.0], np.ndarray, False),
    ],
)
def test_values_match_annotations(value, kind, holds):
    assert matches(value, kind) is holds
