# SPDX-License-Identifier: MIT
"""Reproducible sums, histograms, group-by and concurrent hash maps on GPUs and CPUs.

Arrays are those of numpy, CuPy, PyTorch, JAX, Numba or Warp, or any object with a buffer,
``__cuda_array_interface__`` or ``__dlpack__``. A call runs where its arrays are, and results are
arrays of the same library.
"""

from ._arrays import DeviceArray
from ._context import Context, free_workspaces
from ._errors import (
    ArgumentError,
    CorruptError,
    DeviceError,
    ElementTypeError,
    Error,
    FullError,
    OutOfMemoryError,
    SystemError_ as SystemError,
)
from ._groups import (
    Aggregate,
    GroupBy,
    ReducedByKey,
    UniqueAll,
    UniqueCounts,
    UniqueIndex,
    UniqueIndexCounts,
    UniqueIndexInverse,
    UniqueInverse,
    UniqueInverseCounts,
    group_by,
    reduce_by_key,
    segmented_reduce,
    segmented_sum,
    unique,
)
from ._histogram import (
    BincountOutside,
    Histogram,
    HistogramOutside,
    Outside,
    bincount,
    histogram,
)
from ._info import Device, Info, get_include, info
from ._library import lib as _lib
from ._maps import (
    FindResult,
    HashMap,
    HashSet,
    Items,
    MapResult,
    MapStatistics,
    Rejected,
    RejectedKeys,
    ValuesResult,
)
from ._multimap import MultiMap, RetrieveResult
from ._reduce import (
    argmax,
    argmin,
    count_nonzero,
    dot,
    max,
    mean,
    mean_var,
    min,
    norm,
    prod,
    sum,
    var,
    vdot,
)
from ._scatter import scatter, scatter_add
from ._select import (
    Joined,
    Partitioned,
    Selected,
    isin,
    join,
    partition,
    select,
)

__all__ = [
    "Aggregate",
    "ArgumentError",
    "BincountOutside",
    "Context",
    "CorruptError",
    "Device",
    "DeviceArray",
    "DeviceError",
    "ElementTypeError",
    "Error",
    "FindResult",
    "FullError",
    "GroupBy",
    "HashMap",
    "HashSet",
    "Histogram",
    "HistogramOutside",
    "Info",
    "Items",
    "Joined",
    "MapResult",
    "MapStatistics",
    "MultiMap",
    "OutOfMemoryError",
    "Outside",
    "Partitioned",
    "ReducedByKey",
    "Rejected",
    "RejectedKeys",
    "RetrieveResult",
    "Selected",
    "SystemError",
    "UniqueAll",
    "UniqueCounts",
    "UniqueIndex",
    "UniqueIndexCounts",
    "UniqueIndexInverse",
    "UniqueInverse",
    "UniqueInverseCounts",
    "ValuesResult",
    "argmax",
    "argmin",
    "bincount",
    "count_nonzero",
    "dot",
    "free_workspaces",
    "get_include",
    "group_by",
    "histogram",
    "info",
    "isin",
    "join",
    "max",
    "mean",
    "mean_var",
    "min",
    "norm",
    "partition",
    "prod",
    "reduce_by_key",
    "scatter",
    "scatter_add",
    "segmented_reduce",
    "segmented_sum",
    "select",
    "sum",
    "unique",
    "var",
    "vdot",
]

__version__: str = _lib.cua_version().decode()
"""The version of the loaded library."""
