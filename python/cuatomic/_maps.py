# SPDX-License-Identifier: MIT
"""Hash maps and hash sets of unique keys."""

from __future__ import annotations

import ctypes
import enum
import math
import os
from collections.abc import Mapping
from typing import Any, Iterator, NamedTuple, Optional, Tuple, Union

from . import _abi
from ._container import (
    Container,
    as_host_result,
    count,
    dtype_first,
    element_code,
    host_array,
    is_number,
    word_type,
    zeros,
)
from ._errors import FullError, check, failed, file_failed
from ._library import lib
from ._types import SIGNED, SIZES, UNSIGNED, dtype_name
from ._typing import Array, ArrayLike, DeviceLike, DType

_GROW_PERCENT = 80
HASHES = {"seeded": _abi.CUA_HASHMAP_HASH_SEEDED, "keyed": _abi.CUA_HASHMAP_HASH_KEYED}
_UPDATES = {
    "add": _abi.CUA_UPDATE_ADD,
    "min": _abi.CUA_UPDATE_MIN,
    "max": _abi.CUA_UPDATE_MAX,
    "and": _abi.CUA_UPDATE_AND,
    "or": _abi.CUA_UPDATE_OR,
    "xor": _abi.CUA_UPDATE_XOR,
}
_NONE = _abi.CUA_NONE
_OF_SIZE = {
    4: (_abi.CUA_I32, _abi.CUA_U32, _abi.CUA_F32),
    8: (_abi.CUA_I64, _abi.CUA_U64, _abi.CUA_F64),
}


class MapResult(enum.IntEnum):
    """The result of an operation on a key, as an element of an array `results`."""

    ABSENT = _abi.CUA_HASHMAP_ABSENT
    """compare_exchange: the key is absent."""
    INSERTED = _abi.CUA_HASHMAP_INSERTED
    """The key was absent and is inserted."""
    EXISTS = _abi.CUA_HASHMAP_EXISTS
    """The key was present: its value is kept, replaced or updated."""
    FULL = _abi.CUA_HASHMAP_FULL
    """The key was absent and found no slot."""
    DIFFERS = _abi.CUA_HASHMAP_DIFFERS
    """compare_exchange: the key has another value."""


class FindResult(NamedTuple):
    """The result of `HashMap.find`."""

    values: Array
    found: Array


class ValuesResult(NamedTuple):
    """Values, and a `MapResult` for each key."""

    values: Array
    results: Array


class Items(NamedTuple):
    """Pairs of a map."""

    keys: Array
    values: Array


class Rejected(NamedTuple):
    """Pairs that found no slot."""

    keys: Array
    values: Array
    total: int
    """The number of all rejected pairs, kept or not."""


class RejectedKeys(NamedTuple):
    """Keys that found no slot."""

    keys: Array
    total: int
    """The number of all rejected keys, kept or not."""


class MapStatistics(NamedTuple):
    """The result of `HashMap.statistics`."""

    keys: int
    slots: int
    free: int
    """Slots that an insert may claim at once."""
    erased: int
    """Slots of erased keys."""
    rejected: int
    """Pairs that found no slot since the last clear."""
    worst_bucket: int
    """The largest number of keys with the same home bucket."""
    probes: Tuple[int, ...]
    """``probes[i]``: keys i buckets from their home bucket; the last element: or farther."""
    load: float
    """keys / slots."""


def _options(
    grow=True,
    seed=None,
    hash="seeded",
    rejects=0,
    max_bytes=None,
    max_probes=None,
    no_erase=False,
    portable=False,
):
    """The struct of the options of a map."""
    options = _abi.cua_hashmap_options()
    options.struct_size = ctypes.sizeof(options)
    options.grow_percent = _grow_percent(grow)
    if hash not in HASHES:
        raise ValueError("hash %r: choose 'seeded' or 'keyed'" % (hash,))
    options.hash = HASHES[hash]
    options.seed, options.seed_high = seed_words(seed, hash)
    options.rejects = count(rejects, "rejects", 0)
    options.max_bytes = 0 if max_bytes is None else count(max_bytes, "max_bytes")
    options.max_probes = 0 if max_probes is None else count(max_probes, "max_probes")
    if max_probes is not None and not 32 <= max_probes <= 128:
        raise ValueError("max_probes=%d: choose 32 to 128" % max_probes)
    options.no_erase = bool(no_erase)
    options.portable = bool(portable)
    return options


def _grow_percent(grow):
    if isinstance(grow, bool):
        return _GROW_PERCENT if grow else 0
    percent = count(grow, "grow")
    if percent > 95:
        raise ValueError("grow=%d: choose True, False or 1 to 95 percent" % percent)
    return percent


def seed_words(seed, hash):
    """The two halves of a seed; 0 for a random one."""
    if seed is None:
        return 0, 0
    bits = 128 if hash == "keyed" else 64
    try:
        seed = seed.__index__()
    except AttributeError:
        raise TypeError("seed is not an integer: %r" % (seed,)) from None
    if not 0 < seed < 1 << bits:
        raise ValueError("seed=%d: choose 1 to 2**%d - 1, or None for a random one" % (seed, bits))
    return seed & ((1 << 64) - 1), seed >> 64


def _file_name(path):
    """The bytes of a path."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("the path has a NUL: %r" % (path,))
    return name


class _Hashed(Container):
    """The base of maps and sets."""

    @staticmethod
    def _capacity_for(n):
        """The capacity for n keys."""
        return max(n + n // 4, 1)

    @dtype_first
    def __init__(
        self,
        key_dtype: DType,
        value_dtype: DType,
        capacity: int,
        *,
        device: DeviceLike = None,
        grow: Union[bool, int] = True,
        seed: Optional[int] = None,
        hash: str = "seeded",
        rejects: int = 0,
        max_bytes: Optional[int] = None,
        max_probes: Optional[int] = None,
        no_erase: bool = False,
        portable: bool = False,
        check_full: bool = True,
    ) -> None:
        self._set_types(key_dtype, value_dtype)
        options = _options(grow, seed, hash, rejects, max_bytes, max_probes, no_erase, portable)
        capacity = count(capacity, "capacity")
        self._open(device, check_full)
        self._create(options, capacity)

    def _create(self, options, capacity):
        self._options = options
        handle = ctypes.c_void_p()
        value_type = _NONE if self._value_code == _NONE else word_type(self._value_code)
        status = lib.cua_hashmap_create(
            self._context.handle,
            ctypes.byref(options),
            word_type(self._key_code),
            value_type,
            capacity,
            ctypes.byref(handle),
        )
        check(status, "%s of capacity %d on %s" % (self._name(), capacity, self.device))
        self._handle = handle.value

    def _open(self, device, check_full):
        self._start(device, lib.cua_hashmap_destroy)
        self._check_full = bool(check_full)
        # None: those of the file
        self._options = None
        # the rejected pairs of all calls, if known, and whether kernels may reject pairs too
        self._rejections = 0
        self._shared = False

    @classmethod
    def _loaded(cls, path, device, key_dtype, value_dtype, options):
        """A map of a file."""
        name = _file_name(path)
        check_full = options.pop("check_full", True)
        given = None
        made_with = _options(**options) if options else None
        if options:
            given = ctypes.byref(made_with)
        self = cls.__new__(cls)
        self._open(device, check_full)
        self._options = made_with
        handle = ctypes.c_void_p()
        load = lib.with_errno("cua_hashmap_load")
        status = load(self._context.handle, given, name, ctypes.byref(handle))
        if status:
            raise _load_failed(status, ctypes.get_errno(), path)
        self._handle = handle.value
        view = self._view()
        text = os.fsdecode(path)
        if cls._has_values != bool(view.value_size):
            kinds = ("set", "map") if cls._has_values else ("map", "set")
            raise TypeError("%s: a %s, not a %s" % (text, *kinds))
        self._set_types(
            _loaded_dtype(view.key_size, key_dtype, "keys", text),
            _loaded_dtype(view.value_size, value_dtype, "values", text),
        )
        return self

    # ---- calls ----

    def _write(self, what, keys, function, *arguments, made=None, clears=False):
        """A call that inserts. If there are results, the array `made`, they report a full map."""
        context = self._enter(keys)
        wanted = made is None and self._check_full
        full = 0
        with self._lock:
            handle = self._ready(keys, context)
            if wanted and not clears and self._rejections is None:
                self._rejections = self._count_rejected(handle)
            before = 0 if clears else self._rejections
            # unknown, if a signal handler raises after the call
            self._rejections = None
            status = function(handle, *arguments)
            self._finish(keys, context)
            # the rejections of a call with results, and of kernels, stay unknown
            if wanted and not status:
                after = self._count_rejected(handle)
                full = after - before
                self._rejections = None if self._shared else after
        if status:
            error = self._grow_failed(status, what)
            error.results = None if made is None else self._result(keys, made)
            raise error
        if full:
            raise self._full(what, full, keys.n)

    def _count_rejected(self, handle):
        total = ctypes.c_uint64()
        check(lib.cua_hashmap_rejected(handle, 0, None, None, ctypes.byref(total)), "rejected")
        return total.value

    def _grow_failed(self, status, what):
        if status != _abi.CUA_ERROR_SIZE:
            return failed(status, what)
        error = FullError("%s: the map cannot grow within max_bytes" % what)
        error.status = lib.cua_status_name(status).decode()
        return error

    def _full(self, what, full, n):
        error = failed(_abi.CUA_ERROR_FULL, what)
        error.args = (
            "%s: %d of %d found no slot and changed nothing; the rest is done. "
            "The map has %d slots" % (what, full, n, self.capacity),
        )
        error.rejected = full
        return error

    def _insert(self, what, function, keys, values, results, clears=False):
        made, address = self._bytes(keys, results)
        pointer = None if values is None else values.ptr
        arguments = keys.n, keys.ptr, pointer, address
        self._write(what, keys, function, *arguments, made=made, clears=clears)
        return self._result(keys, made) if results else None

    def contains(self, keys: ArrayLike) -> Array:
        """Whether each key is present.

        Returns
        -------
        array of bool
            uint8 if the library of the arrays has no bool.
        """
        k = self._keys(keys)
        made, address = self._bytes(k)
        self._call("contains", k, lib.cua_hashmap_contains_n, k.n, k.ptr, address)
        return self._bools(k, made)

    def erase(self, keys: ArrayLike) -> Array:
        """Erases keys.

        Returns
        -------
        array of bool
            Whether the element erased its key. Of equal keys a single element does.

        Raises
        ------
        Error
            The map was made with ``no_erase``.
        """
        k = self._keys(keys)
        made, address = self._bytes(k)
        self._call("erase", k, lib.cua_hashmap_erase_n, k.n, k.ptr, address)
        return self._bools(k, made)

    def _erase_one(self, key):
        """Whether a single key was present, and is erased."""
        k = self._one(key)
        if k is None:
            return False
        made, address = self._bytes(k)
        self._call("erase", k, lib.cua_hashmap_erase_n, 1, k.ptr, address)
        return bool(self._downloaded(k, address, _abi.CUA_U8, 1)[0])

    def __contains__(self, key: object) -> bool:
        k = self._one(key)
        if k is None:
            return False
        made, address = self._bytes(k)
        self._call("contains", k, lib.cua_hashmap_contains_n, 1, k.ptr, address)
        return bool(self._downloaded(k, address, _abi.CUA_U8, 1)[0])

    def __len__(self) -> int:
        return self._number_of("len", lib.cua_hashmap_size)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator:
        return iter(self._host_pairs()[0].tolist())

    def _host_pairs(self):
        """All pairs as array.array."""
        self._live()
        with self._lock:
            handle = self._live()
            total = ctypes.c_uint64()
            check(lib.cua_hashmap_size(handle, ctypes.byref(total)), "copy_to_host")
            while True:
                n = total.value
                keys = zeros(n, self._key_code)
                values = None if self._value_code == _NONE else zeros(n, self._value_code)
                pointer = None if values is None else values.buffer_info()[0]
                status = lib.cua_hashmap_copy_to_host(
                    handle, n, keys.buffer_info()[0], pointer, ctypes.byref(total)
                )
                check(status, "copy_to_host")
                if total.value == n:
                    return keys, values

    # ---- the whole map ----

    def _all(self, sorted, like, codes):
        view = self._like(like)
        order = _abi.CUA_HASHMAP_SORTED if sorted else _abi.CUA_HASHMAP_ANY

        def retrieve(handle, n, keys, values, total):
            return lib.cua_hashmap_retrieve(handle, order, n, keys, values, total)

        n, made = self._pairs("items", view, lib.cua_hashmap_size, retrieve, codes)
        if sorted and n and self._key_code not in UNSIGNED:
            made = self._negative_first(view, n, made, codes)
        return self._results(view, made)

    def _negative_first(self, view, n, made, codes):
        """Sorted pairs in the order of signed keys.

        The library sorts the bits of keys: negative keys are last, negative floats also backwards.
        """
        key_code, address = codes[0], made[0][1]
        low, high = 0, n
        while low < high:
            middle = (low + high) // 2
            at = address + middle * SIZES[key_code]
            if math.copysign(1, self._downloaded(view, at, key_code, 1)[0]) < 0:
                high = middle
            else:
                low = middle + 1
        if low == n:
            return made
        backwards = key_code not in SIGNED
        return [
            (None, None) if code == _NONE else self._rotated(view, n, low, at, code, backwards)
            for (_, at), code in zip(made, codes)
        ]

    def _rotated(self, view, n, first, address, code, backwards):
        """A new array: the elements from `first` on, maybe backwards, then the elements before."""
        made, out = view.empty((n,), code)
        handle, size = view.context().handle, SIZES[code]
        rest = n - first
        source = address + first * size
        if backwards:
            host = self._downloaded(view, source, code, rest)
            host.reverse()
            source = host.buffer_info()[0]
        check(lib.cua_copy(handle, out, source, rest * size), "items")
        check(lib.cua_copy(handle, out + rest * size, address, first * size), "items")
        return made, out

    def _copy(self):
        """(an empty map with the options of this one, all keys, all values)."""
        keys, values = self._all(False, None, (self._key_code, self._value_code))
        made = type(self).__new__(type(self))
        made._key_code, made._value_code = self._key_code, self._value_code
        made._open(self.device, self._check_full)
        options = self._options_of_file() if self._options is None else self._options
        made._create(options, self.capacity)
        return made, keys, values

    def _options_of_file(self):
        """The known options of a map that was loaded with those of its file."""
        view = self._view()
        options = _options(max_probes=view.max_probes or None, no_erase=bool(view.no_erase))
        options.hash = view.hash
        return options

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce_ex__(self, protocol):
        raise TypeError("a %s cannot be pickled: save writes a file" % self._name())

    def _pairs_of(self, other):
        """All keys and values of another container of the same types, as arrays of the device."""
        if not isinstance(other, _Hashed):
            raise TypeError("merge: %r is no %s" % (type(other).__name__, self._name()))
        if other is self:
            raise ValueError("merge: both are the same %s" % self._name())
        if other._number != self._number:
            raise ValueError("merge: one is on %s, the other on %s" % (self.device, other.device))
        codes = other._key_code, other._value_code
        if codes != (self._key_code, self._value_code):
            raise TypeError("merge: %r has other types than %r" % (other, self))
        return other._all(False, None, codes)

    def _rejected(self, like):
        """(arrays of the rejected pairs that were kept, the number of all)."""
        view = self._like(like)
        context = self._enter(view)
        total = ctypes.c_uint64()
        with self._lock:
            handle = self._ready(view, context)
            n = min(self._count_rejected(handle), self._room(handle))
            made = [
                (None, None) if code == _NONE else view.empty((n,), code)
                for code in (self._key_code, self._value_code)
            ]
            (_, keys), (_, values) = made
            check(
                lib.cua_hashmap_rejected(handle, n, keys, values, ctypes.byref(total)), "rejected"
            )
        return self._results(view, made), total.value

    def _room(self, handle):
        """The number of rejected pairs that the map keeps."""
        view = _abi.cua_hashmap_view()
        check(lib.cua_hashmap_get_view(handle, ctypes.byref(view)), "rejected")
        room = ctypes.c_uint64()
        if view.rejects:
            # struct cua_hashmap_rejects: count, room
            check(
                lib.cua_copy(self._context.handle, ctypes.byref(room), view.rejects + 8, 8),
                "rejected",
            )
        return room.value

    def clear(self) -> None:
        """Removes all keys, and forgets the rejected ones."""
        self._live()
        with self._lock:
            check(lib.cua_hashmap_clear(self._live()), "clear")
            self._rejections = None if self._shared else 0

    def resize(self, capacity: int) -> None:
        """Makes room for `capacity` keys, more or fewer than before.

        All pairs move to new memory. Views that kernels have become invalid.

        Raises
        ------
        ArgumentError
            The map has more keys, or `max_bytes` does not allow it. The map is unchanged.
        """
        capacity = count(capacity, "capacity")
        self._call("resize(%d)" % capacity, None, lib.cua_hashmap_resize, capacity)

    def check(self) -> None:
        """Waits for the calls before, and raises an error if keys were rejected.

        Raises
        ------
        FullError
            A key found no slot since the last clear, in any call or in a kernel.
        """
        total = self.rejected_total
        if total:
            error = failed(_abi.CUA_ERROR_FULL, self._name())
            error.args = ("%d found no slot since the last clear" % total,)
            error.rejected = total
            raise error

    @property
    def rejected_total(self) -> int:
        """int: the number of pairs that found no slot since the last clear."""
        self._live()
        with self._lock:
            return self._count_rejected(self._live())

    def statistics(self) -> MapStatistics:
        """Counts the keys and slots, and how far keys are from their home buckets.

        Returns
        -------
        MapStatistics
        """
        out = _abi.cua_hashmap_statistics()
        out.struct_size = ctypes.sizeof(out)
        self._call("statistics", None, lib.cua_hashmap_get_statistics, ctypes.byref(out))
        return MapStatistics(
            out.keys,
            out.slots,
            out.free,
            out.erased,
            out.rejected,
            out.worst_bucket,
            tuple(out.probes),
            out.load,
        )

    def save(self, path: Union[str, bytes, os.PathLike]) -> None:
        """Writes the keys and values to a file. The file is replaced as a whole or not at all.

        Raises
        ------
        OSError
            The system refused the file; also `SystemError` of this package.
        """
        name = _file_name(path)
        save = lib.with_errno("cua_hashmap_save")
        self._live()
        with self._lock:
            status = save(self._live(), name)
            number = ctypes.get_errno()
        if status:
            raise file_failed(status, number, path)

    @property
    def capacity(self) -> int:
        """int: the number of slots, at least the capacity asked for."""
        return self._number_of("capacity", lib.cua_hashmap_capacity)

    @property
    def device_view(self) -> _abi.cua_hashmap_view:
        """ctypes structure: the ``struct cua_hashmap_view`` for kernels, to be passed by value.

        It is valid until the map grows, is resized or is closed.
        """
        self._shared = True
        return self._view()

    def _view(self):
        view = _abi.cua_hashmap_view()
        self._call("device_view", None, lib.cua_hashmap_get_view, ctypes.byref(view))
        return view


def _load_failed(status, number, path):
    """The exception of a load."""
    error = file_failed(status, number, path)
    if status == _abi.CUA_ERROR_CORRUPT:
        error.args = (
            "%s: the file is not consistent: save did not write it, or it was truncated or changed"
            % os.fsdecode(path),
        )
    return error


def _loaded_dtype(size, dtype, what, path):
    """The element type of keys or values of `size` bytes in a file."""
    if not size:
        return None
    if size not in (4, 8):
        raise TypeError("%s: %s of %d bytes are not supported" % (path, what, size))
    if dtype is None:
        return "uint%d" % (8 * size)
    if element_code(dtype, what) in _OF_SIZE[size]:
        return dtype
    raise TypeError("%s: the %s have %d bytes, unlike %s" % (path, what, size, dtype))


_PARAMETERS = """
    capacity : int
        Any `capacity` different keys fit, unless `max_probes` is given. Without growth, 1.25 to 2
        times the expected number of keys is a good capacity.
    device : "cpu", "cuda", "cuda:N", int or None
        None is the first CUDA device if there is one, else the CPU.
    grow : bool or int
        Whether calls that insert enlarge a map whose load would exceed 80 %, or that number of
        percent (1 to 95). Such calls wait for the GPU.
    seed : int, optional
        The seed of the hash, for the same layout in each run. Without it a random seed hides the
        layout from senders of hostile keys.
    hash : {"seeded", "keyed"}
        "keyed" is SipHash, which protects even if an attacker can see the layout.
    rejects : int
        The number of rejected pairs to keep for `rejected`.
    max_bytes : int, optional
        The most memory that the map may allocate.
    max_probes : int, optional
        32 to 128: the most buckets that an operation visits. A key that finds no slot in them is
        rejected.
    no_erase : bool
        The map never erases keys. Some updates are then faster.
    portable : bool
        The layout suits kernels for any GPU.
    check_full : bool
        Whether calls that insert raise `FullError` if keys find no slot. On a GPU they wait for
        that. With False they only queue their work, and `check` raises the error later.
"""


_THREADS = """
    On the CPU, a map keeps threads of its own from its first large call on, one for each logical
    CPU. Many such maps have many idle threads. A call inside ``with Context("cpu", threads=1):``
    runs in the calling thread, and ends threads that the map has.

    A call from a signal handler or a destructor raises `Error` if it interrupts a call of the same
    map.
"""


class HashMap(_Hashed):
    __doc__ = (
        """A hash map of unique keys in the memory of a device.

    Keys and values are integers or floats of 4 or 8 bytes. Float keys are equal if their bits are:
    -0.0 is not 0.0, and a NaN is a key like any other. All methods take 1-D arrays on the map's
    device, or lists. Each element is an operation of its own, in no particular order.

    Parameters
    ----------
    key_dtype, value_dtype : dtype
        int32, uint32, int64, uint64, float32 or float64, by name or as an object of a library.
"""
        + _PARAMETERS.lstrip("\n")
        + """
    Notes
    -----
    A lock orders the calls of several threads. If keys find no slot, calls raise `FullError`: these
    keys changed nothing, and all other keys of the call are done. With ``results=True`` a call
    returns the `MapResult` of each key instead, also FULL. Without results, calls on a GPU are
    faster.

    Single keys are numbers, as in ``m[3]``, ``3 in m`` and ``m.pop(3)``. A number that no key is
    equal to, such as 1.5 or a number outside the type of integer keys, is absent as in a dict.
    Numbers for float keys are rounded first.
"""
        + _THREADS
        + """
    See Also
    --------
    HashSet, MultiMap
    """
    )

    _makers = "HashMap.from_dict and HashMap.from_arrays"

    @classmethod
    def from_dict(
        cls,
        mapping: Mapping,
        key_dtype: DType,
        value_dtype: DType,
        capacity: Optional[int] = None,
        *,
        device: DeviceLike = None,
        **options: Any,
    ) -> HashMap:
        """A map of the keys and values of a dict.

        Parameters
        ----------
        mapping : dict or other mapping
            Its keys and values are numbers of the types. Of keys that are equal after the rounding
            to float32 any pair remains.
        key_dtype, value_dtype : dtype
        capacity : int, optional
            By default 1.25 times the number of keys.
        device : optional
            As for `HashMap`.
        **options
            Options of `HashMap`.
        """
        if not isinstance(mapping, Mapping):
            raise TypeError("from_dict: a %s is not a mapping" % type(mapping).__name__)
        pairs = dict(mapping)
        capacity = cls._capacity_for(len(pairs)) if capacity is None else capacity
        made = cls(key_dtype, value_dtype, capacity, device=device, **options)
        made.build(list(pairs), list(pairs.values()))
        return made

    @classmethod
    def from_arrays(
        cls,
        keys: ArrayLike,
        values: ArrayLike,
        capacity: Optional[int] = None,
        *,
        key_dtype: DType = None,
        value_dtype: DType = None,
        **options: Any,
    ) -> HashMap:
        """A map of the keys and values of two arrays, on their device.

        Parameters
        ----------
        keys, values : 1-D array
            Of equal keys any pair remains.
        capacity : int, optional
            By default 1.25 times the number of keys.
        key_dtype, value_dtype : optional
            By default the types of the arrays.
        **options
            Options of `HashMap`.
        """
        made = cls._of_arrays((keys, values), (key_dtype, value_dtype), capacity, options)
        made.build(keys, values)
        return made

    @classmethod
    def load(
        cls,
        path: Union[str, bytes, os.PathLike],
        device: DeviceLike = None,
        *,
        key_dtype: DType = None,
        value_dtype: DType = None,
        **options: Any,
    ) -> HashMap:
        """A map of a file of `save`, of any device.

        Parameters
        ----------
        path : path
            For a file that is not trusted, pass `max_bytes`.
        device : optional
            As for `HashMap`.
        key_dtype, value_dtype : dtype, optional
            The types of the saved map. The file has the sizes of keys and values alone, and the
            sizes of the types must agree with it. Without a type, the map has unsigned integers:
            uint32 or uint64.
        **options
            Options of `HashMap`. Without any, the saved map's options apply.

        Raises
        ------
        CorruptError
            `save` did not write the file, or it was truncated or changed.
        FileNotFoundError
            There is no such file.
        TypeError
            A type has another size than in the file, or the file has a set.

        Examples
        --------
        ``HashMap.load("prices.cua", key_dtype=m.key_dtype, value_dtype=m.value_dtype)``
        """
        return cls._loaded(path, device, key_dtype, value_dtype, options)

    @property
    def value_dtype(self) -> str:
        """str: the element type of the values, such as ``"float32"``."""
        return dtype_name(self._value_code)

    def __repr__(self) -> str:
        if not self._handle:
            return "<closed HashMap>"
        return "<HashMap of %s to %s on %s>" % (self.key_dtype, self.value_dtype, self.device)

    # ---- writes ----

    def build(self, keys: ArrayLike, values: ArrayLike, *, results: bool = False) -> Array:
        """Replaces all pairs. Of equal keys any pair remains. As `insert`, and faster."""
        k = self._keys(keys)
        v = self._value(values, k)
        return self._insert("build", lib.cua_hashmap_build_n, k, v, results, clears=True)

    def insert(self, keys: ArrayLike, values: ArrayLike, *, results: bool = False) -> Array:
        """Inserts the pairs whose keys are absent. Present keys keep their values.

        Parameters
        ----------
        keys : 1-D array
        values : 1-D array, or a number for all keys
        results : bool
            Whether to return a result for each key.

        Returns
        -------
        array of uint8, or None
            The `MapResult` of each key: INSERTED, EXISTS or FULL.

        Raises
        ------
        FullError
            Keys found no slot, and `results` is False. `rejected` of the error is their number. Or
            `max_bytes` prevents the growth of the map: then the call is done in part. With
            ``results=True``, the attribute `results` of the error has the results: FULL for
            keys that were not processed.
        """
        k = self._keys(keys)
        v = self._value(values, k)
        return self._insert("insert", lib.cua_hashmap_insert_n, k, v, results)

    def assign(self, keys: ArrayLike, values: ArrayLike, *, results: bool = False) -> Array:
        """Inserts the pairs, and replaces the values of present keys. Otherwise as `insert`.

        If a call has several values for a key, any of them may remain.
        """
        k = self._keys(keys)
        v = self._value(values, k)
        return self._insert("assign", lib.cua_hashmap_assign_n, k, v, results)

    def insert_or_get(self, keys: ArrayLike, values: ArrayLike, *, results: bool = False) -> Array:
        """As `insert`, and returns the values that the keys have after it.

        Returns
        -------
        array, or ValuesResult
            The values; with ``results=True`` the named tuple (values, results). The value of a key
            that is FULL is 0.
        """
        return self._values_of(
            "insert_or_get", lib.cua_hashmap_insert_or_get_n, keys, values, 0, results
        )

    def exchange(
        self, keys: ArrayLike, values: ArrayLike, *, default: float = 0, results: bool = False
    ) -> Array:
        """As `assign`, and returns the values that the keys had before it.

        Returns
        -------
        array, or ValuesResult
            The values, `default` for keys that were absent; with ``results=True`` the named tuple
            (values, results).
        """
        return self._values_of(
            "exchange", lib.cua_hashmap_exchange_n, keys, values, default, results
        )

    def _values_of(self, what, function, keys, values, default, results):
        k = self._keys(keys)
        v = self._value(values, k)
        out = self._filled(default, self._value_code, "default", k)
        made, address = self._bytes(k, results)
        self._write(what, k, function, k.n, k.ptr, v.ptr, out.ptr, address, made=made)
        got = self._result(k, out.array)
        return ValuesResult(got, self._result(k, made)) if results else got

    def compare_exchange(
        self, keys: ArrayLike, expected: ArrayLike, desired: ArrayLike
    ) -> ValuesResult:
        """Replaces the values of the keys that have the expected ones.

        Parameters
        ----------
        keys : 1-D array
        expected, desired : 1-D array, or a number for all keys
            Values are compared by their bits.

        Returns
        -------
        ValuesResult
            The values that the keys had, and for each key the `MapResult` EXISTS if its value was
            replaced, DIFFERS or ABSENT. The value of an absent key is the expected value.
        """
        k = self._keys(keys)
        e = self._copied(self._value(expected, k, "expected values"))
        d = self._value(desired, k, "desired values")
        made, address = self._bytes(k)
        self._call(
            "compare_exchange",
            k,
            lib.cua_hashmap_compare_exchange_n,
            k.n,
            k.ptr,
            e.ptr,
            d.ptr,
            address,
        )
        return ValuesResult(self._result(k, e.array), self._result(k, made))

    def update(
        self, keys: ArrayLike, values: ArrayLike, op: str = "add", *, results: bool = False
    ) -> Array:
        """Combines new values with the values of present keys, and inserts pairs of absent keys.

        Parameters
        ----------
        keys : 1-D array
        values : 1-D array, or a number for all keys
        op : {"add", "min", "max", "and", "or", "xor"}
            Sums wrap. "min" and "max" are for unsigned values. There are no updates of floats.
        results : bool
            As in `insert`.

        Examples
        --------
        Counts words: ``counts.update(words, 1)``.
        """
        number = self._operation(op)
        k = self._keys(keys)
        if is_number(values):
            return self._update_by(number, k, values, results)
        v = self._value(values, k)
        made, address = self._bytes(k, results)
        self._write(
            "update", k, lib.cua_hashmap_update_n, number, k.n, k.ptr, v.ptr, address, made=made
        )
        return self._result(k, made) if results else None

    def _update_by(self, number, k, value, results):
        host = host_array([value], self._value_code, "value")
        made, address = self._bytes(k, results)
        self._write(
            "update",
            k,
            lib.cua_hashmap_update_value_n,
            number,
            k.n,
            k.ptr,
            host.buffer_info()[0],
            address,
            made=made,
        )
        return self._result(k, made) if results else None

    def _operation(self, op):
        """The number of an operation that the values have."""
        try:
            number = _UPDATES[op]
        except (KeyError, TypeError):
            raise ValueError("op %r: choose %s" % (op, ", ".join(_UPDATES))) from None
        if self._value_code in UNSIGNED or (
            self._value_code in SIGNED and op not in ("min", "max")
        ):
            return number
        raise TypeError(
            "update: there is no %s of %s values%s"
            % (op, self.value_dtype, ", only of unsigned ones" if op in ("min", "max") else "")
        )

    def merge(self, other: HashMap, how: str = "keep") -> None:
        """Inserts all pairs of another map of the same types and device.

        Parameters
        ----------
        other : HashMap
            It is unchanged. Its pairs are copied meanwhile.
        how : {"keep", "replace", "add", "min", "max", "and", "or", "xor"}
            The value of a key that both maps have: its value here, its value there, or both
            combined as by `update`.
        """
        write = {"keep": self.insert, "replace": self.assign}.get(how)
        if write is None and how not in _UPDATES:
            raise ValueError("how %r: choose keep, replace, %s" % (how, ", ".join(_UPDATES)))
        keys, values = self._pairs_of(other)
        if write is None:
            self.update(keys, values, how)
        else:
            write(keys, values)

    # ---- reads ----

    def find(self, keys: ArrayLike, default: Optional[float] = None) -> Union[FindResult, Array]:
        """The values of keys.

        Parameters
        ----------
        keys : 1-D array
        default : number, optional
            The value for absent keys.

        Returns
        -------
        FindResult, or array
            Without a default the named tuple (values, found): the value of an absent key is 0, and
            found is a bool for each key. With a default the values alone.
        """
        k = self._keys(keys)
        out = self._filled(0 if default is None else default, self._value_code, "default", k)
        made, address = self._bytes(k, default is None)
        self._call("find", k, lib.cua_hashmap_find_n, k.n, k.ptr, out.ptr, address)
        values = self._result(k, out.array)
        return FindResult(values, self._bools(k, made)) if default is None else values

    def _get(self, key):
        """(value,) of a single key, or ()."""
        k = self._one(key)
        if k is None:
            return ()
        out, at = k.empty((1,), self._value_code)
        made, address = self._bytes(k)
        self._call("find", k, lib.cua_hashmap_find_n, 1, k.ptr, at, address)
        if not self._downloaded(k, address, _abi.CUA_U8, 1)[0]:
            return ()
        return tuple(self._downloaded(k, at, self._value_code, 1))

    def get(self, key: float, default: object = None) -> object:
        """The value of a single key as a Python number, or `default` if the key is absent."""
        found = self._get(key)
        return found[0] if found else default

    def __getitem__(self, key):
        if is_number(key):
            found = self._get(key)
            if not found:
                raise KeyError(key)
            return found[0]
        k = self._keys(key)
        out, at = k.empty((k.n,), self._value_code)
        made, address = self._bytes(k)
        self._call("find", k, lib.cua_hashmap_find_n, k.n, k.ptr, at, address)
        absent = self._downloaded(k, address, _abi.CUA_U8, k.n).count(0)
        if absent:
            raise KeyError("%d of %d keys are absent" % (absent, k.n))
        return self._result(k, out)

    def __setitem__(self, key, value):
        if not is_number(key):
            self.assign(key, value)
            return
        k = self._new_key(key)
        if not is_number(value):
            raise TypeError("the value of a single key is a number, not %r" % type(value).__name__)
        v = self._filled(value, self._value_code, "value", k)
        self._insert("assign", lib.cua_hashmap_assign_n, k, v, False)

    def __delitem__(self, key):
        if not self._erase_one(key):
            raise KeyError(key)

    def pop(self, key: float, *default: object) -> object:
        """Erases a single key and returns its value as a Python number.

        Parameters
        ----------
        key : number
        default : optional
            The result for an absent key.

        Raises
        ------
        KeyError
            The key is absent, and there is no default.
        """
        if len(default) > 1:
            raise TypeError("pop: pass a key and at most one default")
        k = self._one(key)
        found = () if k is None else self._popped(k)
        if not found and not default:
            raise KeyError(key)
        return (found or default)[0]

    def _popped(self, k):
        """(value,) of a single key that is erased, or ()."""
        out, at = k.empty((1,), self._value_code)
        made, address = self._bytes(k)
        context = self._enter(k)
        with self._lock:
            handle = self._ready(k, context)
            check(lib.cua_hashmap_find_n(handle, 1, k.ptr, at, None), "pop")
            check(lib.cua_hashmap_erase_n(handle, 1, k.ptr, address), "pop")
            self._finish(k, context)
        if not self._downloaded(k, address, _abi.CUA_U8, 1)[0]:
            return ()
        return tuple(self._downloaded(k, at, self._value_code, 1))

    def copy(self) -> HashMap:
        """Another map with the same pairs, types, device and capacity.

        `copy.copy` and `copy.deepcopy` do the same. The copy has the options that the map was made
        with. If it was loaded with those of a file, the copy has only its `hash`, `max_probes` and
        `no_erase`.
        """
        made, keys, values = self._copy()
        made.build(keys, values)
        return made

    def items(self, sorted: bool = False, *, like: ArrayLike = None) -> Items:
        """All keys and their values, as two arrays.

        Parameters
        ----------
        sorted : bool
            Whether the keys are in ascending order. -0.0 is before 0.0, and each NaN is first or
            last, by its sign.
        like : array, optional
            The results are arrays of its kind. By default they are of CuPy, or of numpy on the CPU.
            Without CuPy they have ``__cuda_array_interface__``, without numpy they are of the
            module array.

        Returns
        -------
        Items
            The named tuple (keys, values).

        Examples
        --------
        The result is a pair of arrays, unlike that of a dict, so a loop over pairs needs `zip`::

            keys, values = m.items()
            for k, v in zip(*m.items()):
                print(k, v)

        `copy_to_host` copies all pairs of a GPU at once, so a loop over its arrays is faster.
        ``dict(zip(*(x.tolist() for x in m.copy_to_host())))`` is a dict of Python numbers.
        """
        return Items(*self._all(sorted, like, (self._key_code, self._value_code)))

    def keys(self, sorted: bool = False, *, like: ArrayLike = None) -> Array:
        """All keys. Parameters as in `items`."""
        return self.items(sorted, like=like).keys

    def values(self, *, like: ArrayLike = None) -> Array:
        """The values of all keys, in any order. Parameters as in `items`."""
        return self.items(like=like).values

    def copy_to_host(self) -> Items:
        """All keys and values, in any order, as arrays of numpy, or of the module array without it.

        On a GPU it takes no other device memory than a few megabytes.
        """
        return Items(*map(as_host_result, self._host_pairs()))

    def rejected(self, *, like: ArrayLike = None) -> Rejected:
        """The pairs that found no slot since the last clear. The map keeps the first `rejects`.

        Returns
        -------
        Rejected
            The named tuple (keys, values, total).
        """
        (keys, values), total = self._rejected(like)
        return Rejected(keys, values, total)


class HashSet(_Hashed):
    __doc__ = (
        """A set of unique keys in the memory of a device, as the keys of a `HashMap`.

    Parameters
    ----------
    dtype : dtype
        int32, uint32, int64, uint64, float32 or float64, by name or as an object of a library.
"""
        + _PARAMETERS.lstrip("\n")
        + """
    Notes
    -----
    The notes of `HashMap` hold for sets too.
"""
        + _THREADS
        + """
    See Also
    --------
    HashMap
    """
    )

    _makers = "HashSet.from_array"
    _has_values = False

    @dtype_first
    def __init__(
        self,
        dtype: DType,
        capacity: int,
        *,
        device: DeviceLike = None,
        grow: Union[bool, int] = True,
        seed: Optional[int] = None,
        hash: str = "seeded",
        rejects: int = 0,
        max_bytes: Optional[int] = None,
        max_probes: Optional[int] = None,
        no_erase: bool = False,
        portable: bool = False,
        check_full: bool = True,
    ) -> None:
        super().__init__(
            dtype,
            None,
            capacity,
            device=device,
            grow=grow,
            seed=seed,
            hash=hash,
            rejects=rejects,
            max_bytes=max_bytes,
            max_probes=max_probes,
            no_erase=no_erase,
            portable=portable,
            check_full=check_full,
        )

    @classmethod
    def from_array(
        cls,
        keys: ArrayLike,
        capacity: Optional[int] = None,
        *,
        dtype: DType = None,
        **options: Any,
    ) -> HashSet:
        """A set of the elements of an array, on its device. Parameters as in
        `HashMap.from_arrays`."""
        made = cls._of_arrays((keys,), (dtype,), capacity, options)
        made.build(keys)
        return made

    @classmethod
    def load(
        cls,
        path: Union[str, bytes, os.PathLike],
        device: DeviceLike = None,
        *,
        dtype: DType = None,
        **options: Any,
    ) -> HashSet:
        """A set of a file of `save`, of any device.

        Parameters
        ----------
        path, device, **options
            As in `HashMap.load`.
        dtype : dtype, optional
            The type of the saved set, of the size of its keys. Without it, the keys are uint32 or
            uint64.
        """
        return cls._loaded(path, device, dtype, None, options)

    def __repr__(self) -> str:
        if not self._handle:
            return "<closed HashSet>"
        return "<HashSet of %s on %s>" % (self.key_dtype, self.device)

    def add(self, keys: ArrayLike, *, results: bool = False) -> Array:
        """Adds an array of keys, or a single number. Results and errors as of `HashMap.insert`."""
        k = self._new_key(keys) if is_number(keys) else self._keys(keys)
        return self._insert("add", lib.cua_hashmap_insert_n, k, None, results)

    insert = add

    def discard(self, key: float) -> None:
        """Erases a single key, if it is present. `erase` erases an array of keys."""
        self._erase_one(key)

    def remove(self, key: float) -> None:
        """Erases a single key.

        Raises
        ------
        KeyError
            The key is absent.
        """
        if not self._erase_one(key):
            raise KeyError(key)

    def copy(self) -> HashSet:
        """Another set with the same keys. As `HashMap.copy`."""
        made, keys, _ = self._copy()
        made.build(keys)
        return made

    def build(self, keys: ArrayLike, *, results: bool = False) -> Array:
        """Replaces all keys. As `add`, and faster."""
        k = self._keys(keys)
        return self._insert("build", lib.cua_hashmap_build_n, k, None, results, clears=True)

    def update(self, *others: Union[HashSet, ArrayLike]) -> None:
        """Adds the keys of arrays or of other sets on the device."""
        for other in others:
            self.add(self._pairs_of(other)[0] if isinstance(other, HashSet) else other)

    def merge(self, other: HashSet) -> None:
        """Adds all keys of another set of the same type and device."""
        self.add(self._pairs_of(other)[0])

    def keys(self, sorted: bool = False, *, like: ArrayLike = None) -> Array:
        """All keys. Parameters as in `HashMap.items`."""
        return self._all(sorted, like, (self._key_code, _NONE))[0]

    def copy_to_host(self) -> Array:
        """All keys, in any order, as an array of numpy, or of the module array without it."""
        return as_host_result(self._host_pairs()[0])

    def rejected(self, *, like: ArrayLike = None) -> RejectedKeys:
        """The keys that found no slot since the last clear. The set keeps the first `rejects`.

        Returns
        -------
        RejectedKeys
            The named tuple (keys, total).
        """
        (keys, _), total = self._rejected(like)
        return RejectedKeys(keys, total)
