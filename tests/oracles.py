"""Slow, obvious versions of what the library computes. Nothing here is imported by it."""

import itertools
import math

import numpy as np
from scipy.linalg import hadamard


def gram(value, X, Y):
    """f(<x, y>) for all rows of X and Y, one inner product after another."""
    return np.array([[value(sum(a * b for a, b in zip(x, y, strict=True))) for y in Y] for x in X])


def series(coefficients, t):
    """sum_n a_n t^n, term by term."""
    return sum(float(a) * float(t) ** n for n, a in enumerate(coefficients))


def polynomial_coefficients(degree, gamma, coef0, max_degree):
    """a_n of (gamma t + coef0)^degree, with exact integers for the binomials."""
    return [
        math.comb(degree, n) * gamma**n * coef0 ** (degree - n) if n <= degree else 0.0
        for n in range(max_degree + 1)
    ]


def monomials(X, degree):
    """sqrt(n! / alpha!) x^alpha for all |alpha| = n, in lexicographic order of their variables."""
    columns = []
    for variables in itertools.combinations_with_replacement(range(X.shape[1]), degree):
        repeats = math.prod(math.factorial(variables.count(v)) for v in set(variables))
        weight = math.sqrt(math.factorial(degree) / repeats)
        columns.append(weight * np.prod(X[:, list(variables)], axis=1))
    return np.stack(columns, axis=1)


def rotation_matrices(products, d):
    """H P S of every factor as an explicit (complex) matrix, in the order of `gather`."""
    size = products.gather.shape[1]
    H = hadamard(size).astype(float)
    matrices = []
    for row in products.gather:
        permuted = np.zeros((size, d))
        for j, code in enumerate(row):
            if code < 2 * d:
                permuted[j, code % d] = 1.0 if code < d else -1.0
        matrices.append(H @ permuted)
    if products.complex_to_real:
        return [matrices[i] + 1j * matrices[i + 1] for i in range(0, len(matrices), 2)]
    return matrices


def hadamard_features(products, X, n_columns):
    """What `HadamardProducts.fill` writes, feature by feature and factor by factor."""
    size, first = products.gather.shape[1], len(products.signs)
    width = size + min(size, 256)
    parts = 2 if products.complex_to_real else 1
    matrices = rotation_matrices(products, X.shape[1])
    Z = np.zeros((len(X), n_columns))
    for s in range(len(products.blocks) - 1):
        first_factor = products.rotations[s] // parts
        for b in range(products.blocks[s], products.blocks[s + 1]):
            length, column = products.length[b], products.column[b]
            for l in range(length):
                for i, x in enumerate(X):
                    feature = complex(products.scale[b])
                    for k in range(products.degree[b]):
                        place = products.offset[b, k]
                        if place < first:
                            feature *= products.signs[place + l]
                        else:
                            slot, entry = divmod(place - first, width)
                            matrix = matrices[first_factor + slot // parts]
                            feature *= matrix[(entry + l) % size] @ x
                    Z[i, column + l] += feature.real
                    if parts == 2:
                        Z[i, column + length + l] += feature.imag
    return Z


def run_indices(products, degree):
    """The index tuples (i_1, ..., i_n) of the features of one degree, by set of rotations."""
    size = products.gather.shape[1]
    width = (size + min(size, 256)) * (2 if products.complex_to_real else 1)
    places = len(products.signs) + width * np.arange(degree)
    sets = []
    for s in range(len(products.blocks) - 1):
        tuples = []
        for b in range(products.blocks[s], products.blocks[s + 1]):
            if products.degree[b] == degree:
                start = products.offset[b, :degree] - places
                tuples += [tuple((start + l) % size) for l in range(products.length[b])]
        sets.append(tuples)
    return sets


def matrix_features(products, X, chunk=1024):
    """What `MatrixProducts.fill` writes for each degree, feature by feature.

    The imaginary parts of `chunk` features follow their real parts.
    """
    Z = {}
    for n, weights in products.matrices.items():
        features = []
        for feature in range(weights.shape[2]):
            value = np.full(len(X), complex(products.scale[n]))
            for k in range(n):
                w = weights[0, k, feature].astype(complex)
                if len(weights) == 2:
                    w += 1j * weights[1, k, feature]
                value *= X @ w
            features.append(value)
        columns = []
        for first in range(0, len(features), chunk):
            columns += [value.real for value in features[first : first + chunk]]
            if len(weights) == 2:
                columns += [value.imag for value in features[first : first + chunk]]
        Z[n] = np.array(columns).T
    return Z


def count_sketch(x, bucket, sign, size):
    """out[bucket[j]] += sign[j] x[j]."""
    out = np.zeros(size)
    for value, b, s in zip(x, bucket, sign, strict=True):
        out[b] += float(s) * value
    return out


def circular_convolution(a, b):
    """sum_i a[i] b[j - i], with indices modulo their length."""
    size = len(a)
    return np.array([sum(a[i] * b[(j - i) % size] for i in range(size)) for j in range(size)])


def tensor_sketch(X, buckets, signs, gamma, coef0, size):
    """PP Algorithm 1 without FFT: count sketches of each factor, convolved."""
    rows = []
    for x in X:
        extended = np.append(math.sqrt(gamma) * x, math.sqrt(coef0))
        sketches = [count_sketch(extended, b, s, size) for b, s in zip(buckets, signs, strict=True)]
        whole = sketches[0]
        for sketch in sketches[1:]:
            whole = circular_convolution(whole, sketch)
        rows.append(whole)
    return np.array(rows)


def tensor_sketch_explicit(x, buckets, signs, size):
    """The count sketch of the tensor power x (x) ... (x) x, over all its d^degree entries."""
    out = np.zeros(size)
    for entries in itertools.product(range(len(x)), repeat=len(buckets)):
        bucket = sum(int(buckets[k][j]) for k, j in enumerate(entries)) % size
        sign = math.prod(int(signs[k][j]) for k, j in enumerate(entries))
        out[bucket] += sign * math.prod(x[j] for j in entries)
    return out


def greedy_counts(errors, total):
    """One feature for each degree, then one after another where it lowers the error most.

    `errors[i](D)` is the error that degree i contributes with D features.
    """
    counts = [1] * len(errors)
    for _ in range(total - len(errors)):
        gains = [error(c) - error(c + 1) for error, c in zip(errors, counts, strict=True)]
        counts[int(np.argmax(gains))] += 1
    return counts


def best_counts(errors, total):
    """The least sum of errors over all ways to share `total` features, at least one each."""
    best = math.inf
    for cuts in itertools.combinations(range(1, total), len(errors) - 1):
        counts = np.diff([0, *cuts, total])
        best = min(best, sum(error(c) for error, c in zip(errors, counts, strict=True)))
    return best


def pair_moments(x, y):
    """c = <x,y>^2, N = |x|^2 |y|^2 and q = sum_i x_i^2 y_i^2."""
    c = sum(a * b for a, b in zip(x, y, strict=True)) ** 2
    N = sum(a * a for a in x) * sum(b * b for b in y)
    q = sum(a * a * b * b for a, b in zip(x, y, strict=True))
    return c, N, q


def factor_moments(x, y, complex_signs=False):
    """E over all signs and permutations of u[i] v[i] u[j] v[j] for u = H P S x, v = H P S y.

    Returns the moment for i = j and the mean over i != j (for real signs they all agree). With
    complex signs, of |.|^2 type: u[i] conj(v[i]) conj(u[j]) v[j], and of the pseudo type
    u[i] conj(v[i]) u[j] conj(v[j]). The rows' length must be a power of two, and short.
    """
    size = len(x)
    H = hadamard(size)
    units = [1, 1j, -1, -1j] if complex_signs else [1, -1]
    plain = np.zeros((size, size), dtype=complex)
    pseudo = np.zeros((size, size), dtype=complex)
    n = 0
    for signs in itertools.product(units, repeat=size):
        for order in itertools.permutations(range(size)):
            rotation = H[:, list(order)] * np.array(signs)
            w = (rotation @ x) * (rotation @ y).conj()
            plain += np.outer(w, w.conj())
            pseudo += np.outer(w, w)
            n += 1
    off = ~np.eye(size, dtype=bool)
    return [
        (m.diagonal() / n, m[off] / n) for m in ((plain, pseudo) if complex_signs else (plain,))
    ]
