"""Fast Hadamard transforms and products of rotated rows.

Most functions work on one row at a time, whose rotated copies stay in the first-level cache. The
butterflies are written for vectors of eight numbers, or of sixteen if the processor has AVX-512.
The compiler would not vectorize short strides, and would guard longer strides with overlap checks
that cost more than the arithmetic. LLVM maps these vectors to the vectors of the machine. Each
number is computed by the same operations in the same order, whatever the length of the vectors.

All functions that call each other live in this file, because a cached caller does not notice a
change in another one.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload

from craftmaps.loops.compiled import compiled

LANES = 16  # numbers of the longest vectors
HALF = 8  # numbers of the shortest vectors
SIDE = 4  # slices on each side of a square of features
GROUPS = (SIDE, SIDE // 2)  # slices of a square that may be added into the same columns
MAX_FACTORS = 4  # factors that are multiplied at a time
TILE = 4 * LANES  # rows that are processed side by side if there are few columns
SMALLEST = HALF * HALF  # the shortest transform that the vector code can do
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


def meeting(group: int) -> list[tuple[int, ...]]:
    """Which products P_i Q_k of a square are added into the same columns, and with which signs.

    Returns i, k, the number of the columns and the sign of each product. `group` products meet. If
    all four of a column do, they make the quaternion (P_0, ..., P_3) (Q_0, ..., Q_3). The length of
    a product of quaternions is the product of their lengths, so products that meet add nothing to
    the error of k(x, x), and little to that of similar rows.
    """
    products = [(i, k) for i in range(SIDE) for k in range(SIDE)]
    if group == SIDE:
        negative = {(1, 1), (2, 2), (3, 3), (2, 1), (3, 2), (1, 3)}
        return [(i, k, i ^ k, -1 if (i, k) in negative else 1) for i, k in products]
    return [(i, k, (k - i) % SIDE * (SIDE // group) + i // group, 1) for i, k in products]


class Moves(NamedTuple):
    """Rotations of an arranged row, which move and permute groups of eight entries.

    Column j of a row has place[j] in the arranged row. Rotation k consists of the groups which
    start at group[k], with their entries in the order code[k] % 8. It has a negative sign where
    code[k] >= 128. The codes of every other group have 8 added to them, so that they count in
    vectors of 16 numbers too.
    """

    place: np.ndarray | None
    group: np.ndarray | None
    code: np.ndarray | None


NO_MOVES = Moves(None, None, None)


class Blocks(NamedTuple):
    """The arrays of `HadamardProducts`, with `scale` in the precision of the rows.

    `overlap` is the number of entries that are repeated behind each rotated row. The first blocks
    form `n_squares` squares. With squares, features take the signs of their entries of the first
    factor.
    """

    gather: np.ndarray
    rotations: np.ndarray
    blocks: np.ndarray
    degree: np.ndarray
    length: np.ndarray
    column: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    overlap: int
    n_squares: int


def _has(context: Any, feature: str) -> bool:
    """Whether code is generated for a processor with the feature."""
    return f"+{feature}" in context.codegen().magic_tuple()[2].split(",")


@cache
def can_move() -> bool:
    """Return whether the processor can permute vectors of eight numbers of single precision."""
    return _has(cpu_target.target_context, "avx2")


class _Vectors:
    """Loads, stores and butterflies on vectors of `lanes` numbers, while code is generated."""

    def __init__(self, context: Any, builder: Any, dtype: Any, short: bool = False) -> None:
        self.context, self.builder = context, builder
        self.scalar = context.get_value_type(dtype)
        # The registers of AVX-512 hold 16 numbers of single precision.
        wide = dtype.bitwidth == 32 and _has(context, "avx512f")
        self.lanes = HALF if short or not wide else 2 * HALF
        self.type = ir.VectorType(self.scalar, self.lanes)
        self.align = dtype.bitwidth // 8

    def pointer(self, array_type: Any, array: Any, index: Any) -> Any:
        data = self.context.make_array(array_type)(self.context, self.builder, array).data
        return self.builder.bitcast(self.builder.gep(data, [index]), self.type.as_pointer())

    def load(self, pointer: Any, k: Any = 0) -> Any:
        return self.builder.load(self._place(pointer, k), align=self.align)

    def store(self, vector: Any, pointer: Any, k: Any = 0) -> None:
        self.builder.store(vector, self._place(pointer, k), align=self.align)

    def _place(self, pointer: Any, k: Any) -> Any:
        return self.builder.gep(pointer, [ir.Constant(_I64, k) if isinstance(k, int) else k])

    def product(self, factors: list[Any]) -> Any:
        """The product of vectors as a tree, for short chains of dependent multiplications."""
        while len(factors) > 1:
            pairs = [factors[i : i + 2] for i in range(0, len(factors), 2)]
            factors = [self.builder.fmul(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        return factors[0]

    def add_product(self, total: Any, a: Any, b: Any, minus: bool = False) -> Any:
        product = self.builder.fmul(a, b, flags=("contract",))
        add = self.builder.fsub if minus else self.builder.fadd
        return add(total, product, flags=("contract",))

    def broadcast(self, value: Any) -> Any:
        undefined = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(undefined, value, ir.Constant(_I32, 0))
        mask = ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, first, mask)

    def across(self, vectors: list[Any]) -> list[Any]:
        """Apply the Hadamard transform over a list of vectors, lane by lane."""
        vectors = list(vectors)
        half = 1
        while half < len(vectors):
            for i in range(len(vectors)):
                if not i & half:
                    a, b = vectors[i], vectors[i + half]
                    vectors[i] = self.builder.fadd(a, b)
                    vectors[i + half] = self.builder.fsub(a, b)
            half *= 2
        return vectors

    def permute(self, groups: list[Any], code: Any) -> Any:
        """Join groups of eight numbers, and give them the order and the signs of their codes."""
        vector, of_integers = groups[0], ir.VectorType(_I32, self.lanes)
        if len(groups) == 2:
            lanes = ir.Constant(of_integers, list(range(self.lanes)))
            vector = self.builder.shuffle_vector(*groups, lanes)
        name = {8: "llvm.x86.avx2.permps", 16: "llvm.x86.avx512.permvar.sf.512"}[self.lanes]
        kind = ir.FunctionType(self.type, [self.type, of_integers])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        code = self.builder.zext(code, of_integers)
        vector = self.builder.call(function, [vector, code])  # uses the lowest bits of the codes
        shifted = self.builder.shl(code, ir.Constant(of_integers, [24] * self.lanes))
        sign = self.builder.and_(shifted, ir.Constant(of_integers, [-(2**31)] * self.lanes))
        flipped = self.builder.xor(self.builder.bitcast(vector, of_integers), sign)
        return self.builder.bitcast(flipped, self.type)

    def transform(self, vectors: list[Any]) -> list[Any]:
        """Apply the transform over lanes and vectors, in the same order for any number of lanes."""
        if self.lanes > HALF:
            vectors = [self.within(vector, (HALF,)) for vector in vectors]
        return [self.within(vector, (1, 2, 4)) for vector in self.across(vectors)]

    def within(self, vector: Any, strides: tuple[int, ...]) -> Any:
        """Apply stages of the transform to the lanes of a vector: swap, then add with signs."""
        for stride in strides:
            lanes = range(self.lanes)
            mask = ir.Constant(ir.VectorType(_I32, self.lanes), [j ^ stride for j in lanes])
            signs = ir.Constant(self.type, [-1.0 if j & stride else 1.0 for j in lanes])
            swapped = self.builder.shuffle_vector(vector, vector, mask)
            vector = self.builder.fadd(
                swapped, self.builder.fmul(vector, signs, flags=("contract",)), flags=("contract",)
            )
        return vector


@intrinsic
def _transform64(typing_context: Any, u: Any, i: Any) -> Any:
    """Set u[i:i+64] = H_64 u[i:i+64]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature.args[0].dtype)
        place = vectors.pointer(signature.args[0], args[0], args[1])
        loaded = [vectors.load(place, k) for k in range(SMALLEST // vectors.lanes)]
        for k, vector in enumerate(vectors.transform(loaded)):
            vectors.store(vector, place, k)
        return context.get_dummy_value()

    return types.void(u, types.intp), generate


@intrinsic
def _gather64(typing_context: Any, u: Any, i: Any, x: Any, gather: Any, j: Any) -> Any:
    """Set u[i:i+64] = H_64 x[gather[j:j+64]]; `gather` is unsigned."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature.args[0].dtype)
        place = vectors.pointer(signature.args[0], args[0], args[1])
        source = context.make_array(signature.args[2])(context, builder, args[2]).data
        indices = context.make_array(signature.args[3])(context, builder, args[3]).data
        gathered = []
        for k in range(SMALLEST // vectors.lanes):
            vector = ir.Constant(vectors.type, ir.Undefined)
            for lane in range(vectors.lanes):
                position = builder.add(args[4], ir.Constant(_I64, vectors.lanes * k + lane))
                index = builder.zext(builder.load(builder.gep(indices, [position])), _I64)
                value = builder.load(builder.gep(source, [index]))
                vector = builder.insert_element(vector, value, ir.Constant(_I32, lane))
            gathered.append(vector)
        for k, vector in enumerate(vectors.transform(gathered)):
            vectors.store(vector, place, k)
        return context.get_dummy_value()

    return types.void(u, types.intp, x, gather, types.intp), generate


@intrinsic
def _move64(
    typing_context: Any, u: Any, i: Any, v: Any, group: Any, g: Any, code: Any, j: Any
) -> Any:
    """Set u[i:i+64] = H_64 w, where w has the entries of v that `group` and `code` describe.

    The groups are group[g:g+8], and the codes are code[j:j+64]. `Moves` describes both.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature.args[0].dtype)
        place = vectors.pointer(signature.args[0], args[0], args[1])
        starts = context.make_array(signature.args[3])(context, builder, args[3]).data
        codes = context.make_array(signature.args[5])(context, builder, args[5]).data
        of_bytes = ir.VectorType(ir.IntType(8), vectors.lanes).as_pointer()
        codes = builder.bitcast(builder.gep(codes, [args[6]]), of_bytes)
        n_groups, moved = vectors.lanes // HALF, []
        for k in range(SMALLEST // vectors.lanes):
            groups = []
            for g in range(n_groups * k, n_groups * (k + 1)):
                index = builder.add(args[4], ir.Constant(_I64, g))
                start = builder.zext(builder.load(builder.gep(starts, [index])), _I64)
                at = vectors.pointer(signature.args[2], args[2], start)
                at = builder.bitcast(at, ir.VectorType(vectors.scalar, HALF).as_pointer())
                groups.append(builder.load(at, align=vectors.align))
            code = builder.load(builder.gep(codes, [ir.Constant(_I64, k)]), align=1)
            moved.append(vectors.permute(groups, code))
        for k, vector in enumerate(vectors.transform(moved)):
            vectors.store(vector, place, k)
        return context.get_dummy_value()

    return types.void(u, types.intp, v, group, types.intp, code, types.intp), generate


@intrinsic
def _lanes(typing_context: Any, u: Any) -> Any:
    """Return the length of vectors of numbers like those of u."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(_I64, _Vectors(context, builder, signature.args[0].dtype).lanes)

    return types.intp(u), generate


def _make_butterfly(radix: int) -> Any:
    @intrinsic
    def butterfly(typing_context: Any, u: Any, i: Any, stride: Any) -> Any:
        """Transform `radix` vectors from u[i] on, `stride` apart, in place."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vectors = _Vectors(context, builder, signature.args[0].dtype)
            places = []
            for k in range(radix):
                shift = builder.mul(args[2], ir.Constant(_I64, k))
                index = builder.add(args[1], shift)
                places.append(vectors.pointer(signature.args[0], args[0], index))
            loaded = vectors.across([vectors.load(place) for place in places])
            for place, vector in zip(places, loaded, strict=True):
                vectors.store(vector, place)
            return context.get_dummy_value()

        return types.void(u, types.intp, types.intp), generate

    return butterfly


_butterfly2, _butterfly4, _butterfly8, _butterfly16 = map(_make_butterfly, (2, 4, 8, 16))


def _products(
    context: Any,
    builder: Any,
    array: Any,
    z: Any,
    u: Any,
    places: Any,
    length: Any,
    scale: Any,
    add: bool,
) -> None:
    """Generate a loop over l < length: z[l] = (or +=) scale * prod_k u[places[k]+l].

    `z` is an array and an index, `u` an array; all arrays have the type `array`.
    """
    vectors = _Vectors(context, builder, array.dtype, short=True)
    factor = vectors.broadcast(scale)
    zero, step = ir.Constant(_I64, 0), ir.Constant(_I64, vectors.lanes)
    with cgutils.for_range_slice(builder, zero, length, step, _I64) as (shift, _):
        target = vectors.pointer(array, z[0], builder.add(z[1], shift))
        factors = [factor]
        for place in places:
            index = builder.add(place, shift)
            factors.append(vectors.load(vectors.pointer(array, u, index)))
        half = -(-len(factors) // 2)
        two = vectors.product(factors[:half]), vectors.product(factors[half:])
        result = builder.fmul(*two, flags=("contract",))
        if add:
            result = builder.fadd(vectors.load(target), result, flags=("contract",))
        vectors.store(result, target)


@intrinsic
def _make_run(
    typing_context: Any,
    z: Any,
    j: Any,
    u: Any,
    first: Any,
    p: Any,
    at: Any,
    n: Any,
    length: Any,
    scale: Any,
    signs: Any,
) -> Any:
    """Set z[j+l] = scale * u[first+l] prod_{0 < k < n} u[p[at+k]+l] for l < length.

    With a fold, the products are added to z. There are at most `MAX_FACTORS` factors. The function
    generates code, because numba would call a Python function for each number of factors, which
    takes as long as a short run.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array, add = signature.args[0], signature.args[9] is not types.none
        offsets = context.make_array(signature.args[4])(context, builder, args[4]).data
        for n_factors in range(1, MAX_FACTORS + 1):
            n_is = builder.icmp_signed("==", args[6], ir.Constant(_I64, n_factors))
            with builder.if_then(n_is):
                places = [args[3]]
                for k in range(1, n_factors):
                    index = builder.add(args[5], ir.Constant(_I64, k))
                    places.append(builder.load(builder.gep(offsets, [index])))
                to, length, scale = args[:2], args[7], args[8]
                _products(context, builder, array, to, args[2], places, length, scale, add)
        return context.get_dummy_value()

    index = types.intp
    return (
        types.void(z, index, u, index, p, index, index, index, z.dtype, signs),
        generate,
    )


@intrinsic
def _set_run(typing_context: Any, u: Any, i: Any, source: Any, places: Any, length: Any) -> Any:
    """Set u[i+l] = prod_k source[places[k]+l] for l < length."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = signature.args[0]
        places = [builder.extract_value(args[3], k) for k in range(len(signature.args[3]))]
        one = ir.Constant(context.get_value_type(array.dtype), 1.0)
        _products(context, builder, array, args[:2], args[2], places, args[4], one, False)
        return context.get_dummy_value()

    return types.void(u, types.intp, source, places, types.intp), generate


@intrinsic
def _add_square(
    typing_context: Any,
    z: Any,
    start: Any,
    column: Any,
    b: Any,
    u: Any,
    p: Any,
    stride: Any,
    n: Any,
    length: Any,
    scale: Any,
) -> Any:
    """Add or subtract P_i[l] Q_k[l] at z[start + column[b + SIDE i + k] + l] for i, k < SIDE.

    `meeting` says which products have the same columns, and which are subtracted. P_i is
    scale[b + SIDE i] times the product of the first n // 2 factors of block b + SIDE i. Q_k is the
    product of the other factors of block b + k. The factors of block b are at
    u[p[b stride + 1 + k] + l] for k < n, after the sign. Products stay in registers.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = signature.args[0]
        vectors = _Vectors(context, builder, array.dtype)
        columns = context.make_array(signature.args[2])(context, builder, args[2]).data
        offsets = context.make_array(signature.args[5])(context, builder, args[5]).data
        scales = context.make_array(signature.args[9])(context, builder, args[9]).data
        b, stride = args[3], args[6]

        def member(index: int) -> Any:
            return builder.add(b, ir.Constant(_I64, index))

        def factor(index: int, k: int) -> Any:
            at = builder.add(builder.mul(member(index), stride), ir.Constant(_I64, 1 + k))
            return vectors.pointer(array, args[4], builder.load(builder.gep(offsets, [at])))

        def target(i: int, k: int) -> Any:
            column = builder.load(builder.gep(columns, [member(SIDE * i + k)]))
            return vectors.pointer(array, args[0], builder.add(args[1], column))

        zero, one = ir.Constant(_I64, 0), ir.Constant(_I64, 1)
        n_vectors = builder.udiv(args[8], ir.Constant(_I64, vectors.lanes))
        corners = [builder.load(builder.gep(columns, [member(i)])) for i in (0, SIDE**2 - 1)]
        meet = builder.icmp_signed("==", *corners)
        for group, is_group in zip(GROUPS, (meet, builder.not_(meet)), strict=True):
            for n_factors in range(2, 2 * MAX_FACTORS + 1):
                n_is = builder.icmp_signed("==", args[7], ir.Constant(_I64, n_factors))
                with builder.if_then(builder.and_(n_is, is_group)):
                    half = n_factors // 2
                    signs = [
                        vectors.broadcast(builder.load(builder.gep(scales, [member(SIDE * i)])))
                        for i in range(SIDE)
                    ]
                    P = [[factor(SIDE * i, k) for k in range(half)] for i in range(SIDE)]
                    Q = [[factor(i, k) for k in range(half, n_factors)] for i in range(SIDE)]
                    sums: dict[int, list[Any]] = {}
                    for i, k, where, sign in meeting(group):
                        sums.setdefault(where, []).append((i, k, sign))
                    to = {where: target(*sums[where][0][:2]) for where in sums}
                    with cgutils.for_range_slice(builder, zero, n_vectors, one, _I64) as (l, _):
                        left = [
                            vectors.product([sign, *(vectors.load(place, l) for place in places)])
                            for sign, places in zip(signs, P, strict=True)
                        ]
                        right = [vectors.product([vectors.load(at, l) for at in q]) for q in Q]
                        for where, members in sums.items():
                            total = vectors.load(to[where], l)
                            for i, k, sign in members:
                                total = vectors.add_product(total, left[i], right[k], sign < 0)
                            vectors.store(total, to[where], l)
        return context.get_dummy_value()

    index = types.intp
    return types.void(z, index, column, index, u, p, index, index, index, scale), generate


@compiled
def _transform_short(u: np.ndarray, base: int, n: int) -> None:
    """Set u[base:base+n] = H u[base:base+n] for a small power of two n."""
    half = 1
    while half < n:
        for i in range(n):
            if not i & half:
                a, b = u[base + i], u[base + i + half]
                u[base + i] = a + b
                u[base + i + half] = a - b
        half *= 2


@compiled
def _transform_strides(u: np.ndarray, base: int, n: int) -> None:
    """Apply the stages of the transform of u[base:base+n] with strides of at least 64."""
    stride, lanes = SMALLEST, _lanes(u)
    end = base + n
    if n == 16 * stride:  # one pass instead of two; longer strides would not fit into the cache
        for i in range(base, base + stride, lanes):
            _butterfly16(u, i, stride)
        return
    while 8 * stride <= n:
        for first in range(base, end, 8 * stride):
            for i in range(first, first + stride, lanes):
                _butterfly8(u, i, stride)
        stride *= 8
    if 4 * stride <= n:
        for first in range(base, end, 4 * stride):
            for i in range(first, first + stride, lanes):
                _butterfly4(u, i, stride)
    elif 2 * stride <= n:
        for first in range(base, end, 2 * stride):
            for i in range(first, first + stride, lanes):
                _butterfly2(u, i, stride)


@compiled
def _transform(u: np.ndarray, base: int, n: int) -> None:
    """Set u[base:base+n] = H u[base:base+n] with the unnormalized Hadamard matrix H."""
    if n < SMALLEST:
        _transform_short(u, base, n)
    else:
        for j in range(base, base + n, SMALLEST):
            _transform64(u, j)
        _transform_strides(u, base, n)


@compiled
def hadamard_rows(X: np.ndarray) -> None:
    """Replace each row x of X by H x; the number of columns is a power of two."""
    u = X.reshape(X.size)
    for i in range(X.shape[0]):
        _transform(u, i * X.shape[1], X.shape[1])


@compiled
def _signed_row(x: np.ndarray, X: np.ndarray, i: int) -> None:
    """Set x = (X[i], -X[i], 0)."""
    d = X.shape[1]
    for j in range(d):
        x[j] = X[i, j]
    for j in range(d):
        x[d + j] = -x[j]
    x[2 * d] = 0


@compiled
def _rotate(
    u: np.ndarray, base: int, x: np.ndarray, gather: np.ndarray, row: int, n: int, overlap: int
) -> None:
    """Set u[base:base+n] = H P S x, and repeat its first entries at the end.

    Row `row` of the flat `gather` contains permutation, signs and padding, because x is stored as
    (x, -x, 0). With the repeated entries, a slice can start anywhere without wrapping around.
    """
    first = row * n
    if n < SMALLEST:
        for j in range(n):
            u[base + j] = x[gather[first + j]]
        _transform_short(u, base, n)
        for j in range(overlap):
            u[base + n + j] = u[base + j]
    else:
        for j in range(0, n, SMALLEST):
            _gather64(u, base + j, x, gather, first + j)
        _transform_strides(u, base, n)
        _set_run(u, base + n, u, (base,), overlap)


def _arrange(x: np.ndarray, X: np.ndarray, i: int, place: Any) -> None:
    """Set x to the entries of X[i] from which `_turn` reads."""


def _turn(
    u: np.ndarray,
    base: int,
    x: np.ndarray,
    gather: np.ndarray,
    group: Any,
    code: Any,
    row: int,
    n: int,
    overlap: int,
) -> None:
    """Do the same as `_rotate`, for the x of `_arrange`.

    The kind of rotation is chosen while code is generated, because the loop would compile both.
    """


@overload(_arrange, inline="always")
def _compiled_arrange(x, X, i, place):  # type: ignore[no-untyped-def]
    def arrange(x, X, i, place):  # type: ignore[no-untyped-def]
        for j in range(X.shape[1]):
            x[place[j]] = X[i, j]

    return (lambda x, X, i, place: _signed_row(x, X, i)) if place is types.none else arrange


@overload(_turn, inline="always")  # a function between would take longer than the permutation
def _compiled_turn(u, base, x, gather, group, code, row, n, overlap):  # type: ignore[no-untyped-def]
    def turn(u, base, x, gather, group, code, row, n, overlap):  # type: ignore[no-untyped-def]
        for j in range(0, n, SMALLEST):
            at = row * n + j
            _move64(u, base + j, x, group, at // HALF, code, at)
        _transform_strides(u, base, n)
        _set_run(u, base + n, u, (base,), overlap)

    if group is types.none:
        return lambda u, base, x, gather, group, code, row, n, overlap: _rotate(
            u, base, x, gather, row, n, overlap
        )
    return turn


@compiled
def _multiply_first(u: np.ndarray, p: np.ndarray, at: int, n: int, length: int, spare: int) -> int:
    """Multiply some of the n factors at p[at:] into u[spare:]; return their number minus one.

    At most `MAX_FACTORS` factors are left, and the product is the first of them.
    """
    done, first = 0, p[at]
    while n - done > MAX_FACTORS:
        others = (p[at + done + 1], p[at + done + 2], p[at + done + 3])
        _set_run(u, spare, u, (first, *others), length)
        done, first = done + 3, spare
    return done


@compiled
def product_rows(
    X: np.ndarray, drawn: Blocks, place: Any, group: Any, code: Any, signs: Any, Z: np.ndarray
) -> None:
    """Add scale[b] * prod_{k < degree[b]} u[offset[b,k]+l] to Z[i, column[b]+l] for all blocks b.

    u contains the fixed `signs`, which are one more factor of a fold, and then the rotations of a
    row one after another. Rotations are computed set by set: set s has the rows
    rotations[s]:rotations[s+1] of `gather` and the blocks blocks[s]:blocks[s+1]. If these rotations
    are `Moves` too, `place`, `group` and `code` describe them, which is faster, and are None
    otherwise.

    Without a fold, `signs` is None, no two blocks have common columns, and columns without a block
    do not change.

    There are many short blocks. Slicing an array, or calling a function with arrays that is not
    inlined, takes about ten nanoseconds, so this loop avoids both.
    """
    gather, rotations, blocks, degree, length, column, scale, offset, overlap, n_squares = drawn
    size, indices = gather.shape[1], gather.reshape(gather.size)
    width = size + overlap
    most = 0
    for s in range(rotations.shape[0] - 1):
        most = max(most, rotations[s + 1] - rotations[s])
    first = 0 if signs is None else signs.shape[0]
    spare = first + most * width
    memory = np.empty(spare + overlap + LANES, X.dtype)
    u = memory[-(np.int64(memory.ctypes.data) // memory.itemsize) % LANES :]
    if signs is not None:
        for j in range(first):  # a slice has a message of errors, which takes long to compile
            u[j] = signs[j]
    p, stride = offset.reshape(offset.size), offset.shape[1]
    own = 1 if n_squares else 0  # the sign is in the first rotation, so it is no factor
    x = np.zeros(max(size, 2 * X.shape[1] + 1), X.dtype)
    z = Z.reshape(Z.size)
    for i in range(X.shape[0]):
        _arrange(x, X, i, place)
        start = i * Z.shape[1]
        if signs is not None:
            z[start : start + Z.shape[1]] = 0
        for s in range(rotations.shape[0] - 1):
            for k in range(rotations[s + 1] - rotations[s]):
                base, row = first + k * width, rotations[s] + k
                _turn(u, base, x, indices, group, code, row, size, overlap)
            if n_squares:  # the signs of features
                _set_run(u, first, u, (0, first), width)
            if s == 0:
                for b in range(0, n_squares * SIDE * SIDE, SIDE * SIDE):
                    n, l = degree[b] - 1, length[b]
                    _add_square(z, start, column, b, u, p, stride, n, l, scale)
            for b in range(max(blocks[s], n_squares * SIDE * SIDE), blocks[s + 1]):
                n, j, c = degree[b] - own, start + column[b], scale[b]
                whole = length[b] - length[b] % HALF
                for l in range(whole, length[b]):
                    product = c
                    for k in range(own, own + n):
                        product *= u[offset[b, k] + l]
                    if signs is None:
                        z[j + l] = product
                    else:
                        z[j + l] += product
                at = b * stride + own
                factor = p[at]
                if n > MAX_FACTORS:
                    done = _multiply_first(u, p, at, n, whole, spare)
                    factor, at, n = spare, at + done, n - done
                _make_run(z, j, u, factor, p, at, n, whole, c, signs)


@compiled
def _signed_tile(x: np.ndarray, X: np.ndarray, i: int, n_rows: int) -> None:
    """Set x[j] = X[:, j], x[d+j] = -X[:, j] and x[2d] = 0 for the rows i, ..., i + n_rows of X."""
    d = X.shape[1]
    x[:] = 0
    for r in range(n_rows):
        for j in range(d):
            x[j * TILE + r] = X[i + r, j]
            x[(d + j) * TILE + r] = -X[i + r, j]


@compiled
def _rotate_tile(
    u: np.ndarray, base: int, x: np.ndarray, gather: np.ndarray, row: int, used: int
) -> None:
    """Do the same as `_rotate` for the rows of a tile."""
    n = gather.shape[1]
    for j in range(n):
        _set_run(u, base + j * TILE, x, (np.int64(gather[row, j]) * TILE,), used)
    half = 1
    while half < n:
        for j in range(n):
            if not j & half:
                for r in range(0, used, _lanes(u)):
                    _butterfly2(u, base + j * TILE + r, half * TILE)
        half *= 2
    for j in range(n):
        _set_run(u, base + (n + j) * TILE, u, (base + j * TILE,), used)


@compiled
def product_tiles(X: np.ndarray, drawn: Blocks, signs: Any, Z: np.ndarray) -> None:
    """Do the same as `product_rows` for few columns, with several rows side by side in vectors.

    With few columns, runs of features are so short that starting them would take most of the time.
    A tile with fewer rows is processed like a full tile, so the features of a row do not depend on
    other rows.
    """
    gather, rotations, blocks, degree, length, column, scale, offset, _, _ = drawn
    size = gather.shape[1]
    first, sign_factors = (0, 0) if signs is None else (signs.shape[0], 1)
    most = 0
    for s in range(rotations.shape[0] - 1):
        most = max(most, rotations[s + 1] - rotations[s])
    spare = most * 2 * size * TILE
    u = np.empty(spare + TILE, X.dtype)
    x = np.empty((2 * X.shape[1] + 1) * TILE, X.dtype)
    z = np.empty(Z.shape[1] * TILE, X.dtype)
    p = np.empty(max(offset.shape[1], 1), np.int64)
    for i in range(0, X.shape[0], TILE):
        n_rows = min(TILE, X.shape[0] - i)
        used = -(-n_rows // LANES) * LANES
        _signed_tile(x, X, i, n_rows)
        if signs is not None:
            z[:] = 0
        for s in range(rotations.shape[0] - 1):
            for k in range(rotations[s + 1] - rotations[s]):
                _rotate_tile(u, k * 2 * size * TILE, x, gather, rotations[s] + k, used)
            for b in range(blocks[s], blocks[s + 1]):
                n = degree[b] - sign_factors
                for k in range(n):
                    p[k] = (offset[b, k + sign_factors] - first) * TILE
                for l in range(length[b]):
                    c = scale[b]
                    if signs is not None:
                        c *= signs[offset[b, 0] + l]
                    j = (column[b] + l) * TILE
                    done, factor = 0, p[0]
                    if n > MAX_FACTORS:
                        done, factor = _multiply_first(u, p, 0, n, used, spare), spare
                    _make_run(z, j, u, factor, p, done, n - done, used, c, signs)
                    for k in range(n):
                        p[k] += TILE
        for r in range(n_rows):
            if signs is not None:
                for j in range(Z.shape[1]):
                    Z[i + r, j] = z[j * TILE + r]
                continue
            for b in range(degree.shape[0]):
                for j in range(column[b], column[b] + length[b]):
                    Z[i + r, j] = z[j * TILE + r]


@compiled
def complex_product_rows(X: np.ndarray, drawn: Blocks, Z: np.ndarray) -> None:
    """Do the same as `product_rows` without a fold, for complex u_k.

    The real parts of a block go to `length` columns, and the imaginary parts to the next columns.

    Rows 2k and 2k+1 of `gather` are the real and the imaginary part of factor k. Every entry of x
    has a sign from {1, i, -1, -i}, so it occurs in one of these rows and is 0 in the other.
    """
    gather, rotations, blocks, degree, length, column, scale, offset, overlap, _ = drawn
    size, indices = gather.shape[1], gather.reshape(gather.size)
    width = size + overlap
    most = 0
    for s in range(rotations.shape[0] - 1):
        most = max(most, rotations[s + 1] - rotations[s])
    u = np.empty(most * width, X.dtype)
    x = np.empty(2 * X.shape[1] + 1, X.dtype)
    re, im = np.empty(overlap, X.dtype), np.empty(overlap, X.dtype)
    for i in range(X.shape[0]):
        _signed_row(x, X, i)
        z = Z[i]
        for s in range(rotations.shape[0] - 1):
            for k in range(rotations[s + 1] - rotations[s]):
                _rotate(u, k * width, x, indices, rotations[s] + k, size, overlap)
            for b in range(blocks[s], blocks[s + 1]):
                n = length[b]
                re[:n] = scale[b]
                im[:n] = 0
                for k in range(degree[b]):
                    p = offset[b, k]
                    a, c = u[p : p + n], u[p + width : p + width + n]
                    for l in range(n):
                        re[l], im[l] = re[l] * a[l] - im[l] * c[l], re[l] * c[l] + im[l] * a[l]
                j = column[b]
                for l in range(n):
                    z[j + l] = re[l]
                    z[j + n + l] = im[l]


# ---------------------------------------------------------------------------
# Frequencies that are products of diagonals and Hadamard matrices.
# ---------------------------------------------------------------------------


@compiled
def _spread(u: np.ndarray, x: np.ndarray, signs: np.ndarray) -> None:
    """Set u = H D x for the diagonal matrix D of signs and x padded with zeros."""
    for j in range(x.shape[0]):
        u[j] = signs[j] * x[j]
    for j in range(x.shape[0], u.shape[0]):
        u[j] = 0
    _transform(u, 0, u.shape[0])


@compiled
def _scaled(z: np.ndarray, scale: np.ndarray, u: np.ndarray) -> None:
    """Set z to the first entries of scale * u."""
    for j in range(z.shape[0]):
        z[j] = scale[j] * u[j]


@compiled
def structured_rows(
    X: np.ndarray,
    rotations: np.ndarray,
    permutations: np.ndarray,
    signs: np.ndarray,
    scale: np.ndarray,
    first_column: int,
    Z: np.ndarray,
) -> None:
    """Set Z[i, first_column:] = scale * (H S_b H P D_1 H D_0 x for all blocks b).

    The diagonal matrices D_k = rotations[g, k] and the permutation P = permutations[g] belong to a
    group g of blocks, and S_b = signs[b]. The size of H is at least 64.
    """
    n_groups, n_blocks, size = len(rotations), len(signs), signs.shape[1]
    in_group = -(-n_blocks // n_groups)
    u, v, w = np.empty(size, X.dtype), np.empty(size, X.dtype), np.empty(size, X.dtype)
    for i in range(X.shape[0]):
        z = Z[i, first_column:]
        for g in range(n_groups):
            _spread(u, X[i], rotations[g, 0])
            for j in range(size):
                u[j] *= rotations[g, 1, j]
            for j in range(0, size, SMALLEST):
                _gather64(v, j, u, permutations[g], j)
            _transform_strides(v, 0, size)
            for b in range(g * in_group, min((g + 1) * in_group, n_blocks)):
                _scaled(w, signs[b], v)
                _transform(w, 0, size)
                _scaled(z[b * size : (b + 1) * size], scale[b * size :], w)


@compiled
def fastfood_rows(
    X: np.ndarray,
    signs: np.ndarray,
    permutation: np.ndarray,
    diagonals: np.ndarray,
    scale: np.ndarray,
    used: int,
    first_column: int,
    Z: np.ndarray,
) -> None:
    """Set Z[i, first_column:] = scale * (the first `used` entries of H G_b P H B x for all b).

    B = signs, P = permutation and G_b = diagonals[b]. The size of H is at least 64, and `used` a
    power of two, so these entries of H v are a smaller H times sums of entries of v.
    """
    n_blocks, size = diagonals.shape
    spread, u, v = np.empty(size, X.dtype), np.empty(size, X.dtype), np.empty(used, X.dtype)
    for i in range(X.shape[0]):
        z = Z[i, first_column:]
        _spread(spread, X[i], signs)
        for j in range(size):
            u[j] = spread[permutation[j]]
        for b in range(n_blocks):
            v[:] = 0
            for part in range(0, size, used):
                diagonal, some = diagonals[b, part : part + used], u[part : part + used]
                for j in range(used):
                    v[j] += diagonal[j] * some[j]
            _transform(v, 0, used)
            _scaled(z[b * used : (b + 1) * used], scale[b * used :], v)
