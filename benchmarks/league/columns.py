"""How learners take columns that are not numbers: text, dates and categories."""

from typing import Any

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

MAX_HISTOGRAM_CATEGORIES = 254


def plain(X: Any, X_test: Any) -> tuple[Any, Any]:
    """Training and test rows with text as categories, and dates as numbers."""
    if not isinstance(X, pd.DataFrame):
        return X, X_test
    parts = dates_as_numbers(X), dates_as_numbers(X_test)
    for name in X.select_dtypes(["object", "string"]):
        levels = pd.CategoricalDtype(sorted(set(X[name]) | set(X_test[name])))
        for part in parts:
            part[name] = part[name].astype(levels)
    return parts


def dates_as_numbers(X: pd.DataFrame) -> pd.DataFrame:
    """Replace each column of dates by year, month, day and the days since 1970."""
    X = X.copy()
    for name in X.select_dtypes("datetime"):
        date = X.pop(name)
        for part in ("year", "month", "day"):
            X[f"{name}_{part}"] = getattr(date.dt, part)
        X[f"{name}_days"] = (date - pd.Timestamp(1970, 1, 1)).dt.days
    return X


def category_names(X: Any) -> list[str]:
    """Names of the columns that hold categories; an array has none."""
    return list(X.select_dtypes("category")) if isinstance(X, pd.DataFrame) else []


def one_hot(X: Any) -> Any:
    """An unfitted transformer: numbers imputed and standardized, categories one-hot."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    if not isinstance(X, pd.DataFrame):
        return numbers
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (encoder, make_column_selector(dtype_include="category")),
    )


def numbered(X: Any) -> Any:
    """An unfitted transformer: categories as numbers in the first columns, rare ones joined."""
    if not isinstance(X, pd.DataFrame):
        return "passthrough"
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=float("nan"),
        max_categories=MAX_HISTOGRAM_CATEGORIES,
    )
    categories = make_column_selector(dtype_include="category")
    return make_column_transformer((encoder, categories), remainder="passthrough")
