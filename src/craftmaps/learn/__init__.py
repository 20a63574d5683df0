"""Features in, model out. The files, from a learner's outside to its inside:

- learners: `kernel_classifier`, `kernel_regressor` (tables and losses), `classifier`, `regressor`
  (the squared loss from sums), `kernel_pca`, `window`;
- what they share: `hooks` (what a learner defines), `base` (fit, begin, add, solve), `fit_blocks`,
  `mergeable` (streams), `one_pass` (ridge), `kernel_machine` (losses), `table_rows`, `summary`;
- targets and predictions: `classes`, `codes`, `code_matrices`, `discriminant`, `own_class`;
- what is known about errors: `bands`, `intervals`, `uncertainty`, `calibration`;
- rows on their way into sums: `row_checks`, `map_rows`, `features`, `stream`, `row_sums`,
  `row_buffer`, `class_sums`, `block_sums`, `normal_equations`, and out again: `removal`;
- several passes: `losses`, `choose_loss`, `few_pass_fit`, `passes`, `rows_again`;
- `solvers`, with `solvers.choose` as the place where one is chosen;
- on disk: `checkpoint`, `stored` (checks of model files), and `progress` in a terminal.
"""

from craftmaps.learn.classifier import OnePassClassifier
from craftmaps.learn.kernel_classifier import KernelClassifier
from craftmaps.learn.kernel_pca import KernelPCA
from craftmaps.learn.kernel_regressor import KernelRegressor
from craftmaps.learn.normal_equations import NormalEquations
from craftmaps.learn.regressor import OnePassRegressor
from craftmaps.learn.window import Window

__all__ = [
    "KernelClassifier",
    "KernelPCA",
    "KernelRegressor",
    "NormalEquations",
    "OnePassClassifier",
    "OnePassRegressor",
    "Window",
]
