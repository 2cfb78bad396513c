# SPDX-License-Identifier: MIT
"""Hash maps of keys with any number of values."""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Optional

from . import _abi
from ._types import dtype_name
from ._container import Container, count, dtype_first, is_number, word_type
from ._errors import check, failed
from ._library import lib
from ._maps import HASHES, Items, seed_words
from ._typing import Array, ArrayLike, DeviceLike, DType


class RetrieveResult(NamedTuple):
    """The result of `MultiMap.retrieve`."""

    offsets: Array
    values: Array


def _options(seed, hash, link_size, portable):
    options = _abi.cua_multimap_options()
    options.struct_size = ctypes.sizeof(options)
    if hash not in HASHES:
        raise ValueError("hash %r: choose 'seeded' or 'keyed'" % (hash,))
    options.hash = HASHES[hash]
    options.seed, options.seed_high = seed_words(seed, hash)
    if link_size not in (None, 8):
        raise ValueError("link_size=%r: choose 8 or None" % (link_size,))
    options.link_size = link_size or 0
    options.portable = bool(portable)
    return options


class MultiMap(Container):
    """A hash map of keys with any number of values each, in the memory of a device.

    Keys and values are integers or floats of 4 or 8 bytes. Float keys are equal if their bits are.
    All methods take 1-D arrays on the map's device, or lists.

    Parameters
    ----------
    key_dtype, value_dtype : dtype
        int32, uint32, int64, uint64, float32 or float64, by name or as an object of a library.
    capacity : int
        The number of pairs that fit. The map does not grow.
    keys_capacity : int, optional
        The number of different keys that are certain to fit, by default `capacity`.
    device : "cpu", "cuda", "cuda:N", int or None
        None is the first CUDA device if there is one, else the CPU.
    seed, hash, portable, check_full
        As for `HashMap`.
    link_size : {None, 8}
        8: the layout of maps with more than 2**31 - 2 pairs, for kernels that need a fixed layout.

    Notes
    -----
    A lock orders the calls of several threads. Values of a key keep the order of the calls that
    inserted them. Within a call the order is unspecified.

    On the CPU, a map keeps threads of its own from its first large call on, one for each logical
    CPU. A call inside ``with Context("cpu", threads=1):`` runs in the calling thread, and ends
    threads that the map has. A call from a signal handler or a destructor raises `Error` if it
    interrupts a call of the same map.

    See Also
    --------
    HashMap
    """

    _makers = "MultiMap.from_arrays"

    @staticmethod
    def _capacity_for(n):
        """The capacity for n pairs."""
        return max(n, 1)

    @dtype_first
    def __init__(
        self,
        key_dtype: DType,
        value_dtype: DType,
        capacity: int,
        keys_capacity: Optional[int] = None,
        *,
        device: DeviceLike = None,
        seed: Optional[int] = None,
        hash: str = "seeded",
        link_size: Optional[int] = None,
        portable: bool = False,
        check_full: bool = True,
    ) -> None:
        self._set_types(key_dtype, value_dtype)
        options = _options(seed, hash, link_size, portable)
        self._capacity = count(capacity, "capacity")
        keys = self._capacity if keys_capacity is None else count(keys_capacity, "keys_capacity")
        self._start(device, lib.cua_multimap_destroy)
        self._check_full = bool(check_full)
        # at least the entries in use, and whether erased entries wait for reclaim
        self._used = 0
        self._erased = False
        self._shared = False
        handle = ctypes.c_void_p()
        status = lib.cua_multimap_create(
            self._context.handle,
            ctypes.byref(options),
            word_type(self._key_code),
            word_type(self._value_code),
            keys,
            self._capacity,
            ctypes.byref(handle),
        )
        check(status, "MultiMap of capacity %d on %s" % (self._capacity, self.device))
        self._handle = handle.value

    @classmethod
    def from_arrays(
        cls,
        keys: ArrayLike,
        values: ArrayLike,
        capacity: Optional[int] = None,
        *,
        key_dtype: DType = None,
        value_dtype: DType = None,
        **options: object,
    ) -> MultiMap:
        """A map of the pairs of two arrays, on their device.

        Parameters
        ----------
        keys, values : 1-D array
        capacity : int, optional
            By default the number of pairs.
        key_dtype, value_dtype : optional
            By default the types of the arrays.
        **options
            Options of `MultiMap`.
        """
        made = cls._of_arrays((keys, values), (key_dtype, value_dtype), capacity, options)
        made.insert(keys, values)
        return made

    def __repr__(self) -> str:
        if not self._handle:
            return "<closed MultiMap>"
        return "<MultiMap of %s to %s on %s>" % (self.key_dtype, self.value_dtype, self.device)

    @property
    def value_dtype(self) -> str:
        """str: the element type of the values, such as ``"float32"``."""
        return dtype_name(self._value_code)

    @property
    def capacity(self) -> int:
        """int: the number of pairs that fit."""
        return self._capacity

    @property
    def distinct_keys(self) -> int:
        """int: the number of different keys."""
        return self._number_of("distinct_keys", lib.cua_multimap_keys)

    @property
    def device_view(self) -> _abi.cua_multimap_view:
        """ctypes structure: the ``struct cua_multimap_view`` for kernels, to be passed by value.

        It is valid until the map is closed. From then on only `reclaim` reuses erased entries.
        """
        self._shared = True
        view = _abi.cua_multimap_view()
        self._call("device_view", None, lib.cua_multimap_get_view, ctypes.byref(view))
        return view

    # ---- writes ----

    def insert(self, keys: ArrayLike, values: ArrayLike, *, results: bool = False) -> Array:
        """Inserts pairs. Equal pairs are kept, each of them.

        Parameters
        ----------
        keys : 1-D array
        values : 1-D array, or a number for all keys
        results : bool
            Whether to return a result for each pair.

        Returns
        -------
        array of uint8, or None
            The `MapResult` of each pair: INSERTED or FULL.

        Raises
        ------
        FullError
            Pairs found no room, and `results` is False. `rejected` of the error is their number.
            The other pairs are inserted.
        """
        k = self._keys(keys)
        v = self._value(values, k)
        made, address = self._bytes(k, results)
        context = self._enter(k)
        wanted = self._check_full and not results
        with self._lock:
            handle = self._ready(k, context)
            self._make_room(handle, k.n)
            before = self._size(handle) if wanted else 0
            status = lib.cua_multimap_insert_n(handle, k.n, k.ptr, v.ptr, address)
            self._finish(k, context)
            check(status, "insert")
            full = before + k.n - self._size(handle) if wanted else 0
        if full > 0:
            raise self._full(full, k.n)
        return self._result(k, made) if results else None

    def _size(self, handle):
        total = ctypes.c_uint64()
        check(lib.cua_multimap_size(handle, ctypes.byref(total)), "size")
        return total.value

    def _make_room(self, handle, n):
        """Reuses erased entries if the fresh ones may not suffice."""
        if self._used + n > self._capacity and self._erased and not self._shared:
            check(lib.cua_multimap_reclaim(handle), "reclaim")
            self._used = self._size(handle)
            self._erased = False
        self._used += n

    def _full(self, full, n):
        error = failed(_abi.CUA_ERROR_FULL, "insert")
        error.args = (
            "insert: %d of %d pairs found no room; the rest is inserted. "
            "The capacity is %d" % (full, n, self._capacity),
        )
        error.rejected = full
        return error

    def erase(self, keys: ArrayLike) -> Array:
        """Erases keys and all their values.

        Returns
        -------
        array of int64
            The number of values that the element erased. Of equal keys a single element erases.
        """
        k = self._keys(keys)
        made, address = k.empty((k.n,), _abi.CUA_I64)
        context = self._enter(k)
        with self._lock:
            handle = self._ready(k, context)
            self._erased = True
            status = lib.cua_multimap_erase_n(handle, k.n, k.ptr, address)
            self._finish(k, context)
        check(status, "erase")
        return self._result(k, made)

    def reclaim(self) -> None:
        """Makes the room of erased pairs free. `insert` does so if it needs the room, unless
        kernels use the `device_view`."""
        self._live()
        with self._lock:
            handle = self._live()
            check(lib.cua_multimap_reclaim(handle), "reclaim")
            self._used = self._size(handle)
            self._erased = False

    def clear(self) -> None:
        """Removes all pairs."""
        self._live()
        with self._lock:
            check(lib.cua_multimap_clear(self._live()), "clear")
            self._used, self._erased = 0, False

    def check(self) -> None:
        """Waits for the calls before, and raises an error if pairs were rejected.

        Raises
        ------
        FullError
            A pair found no room since the last clear, in any call or in a kernel.
        """
        self._call("MultiMap", None, lib.cua_multimap_status)

    # ---- reads ----

    def count(self, keys: ArrayLike) -> Array:
        """The number of values of each key.

        Returns
        -------
        array of int64
        """
        k = self._keys(keys)
        made, address = k.empty((k.n,), _abi.CUA_I64)
        self._call("count", k, lib.cua_multimap_count_n, k.n, k.ptr, address)
        return self._result(k, made)

    def retrieve(self, keys: ArrayLike) -> RetrieveResult:
        """The values of keys.

        Returns
        -------
        RetrieveResult
            The named tuple (offsets, values): ``values[offsets[i]:offsets[i + 1]]`` are the values
            of ``keys[i]``, the newest first. The offsets are int64, one more than keys.
        """
        k = self._keys(keys)
        offsets, values, _ = self._retrieve(k)
        return RetrieveResult(self._result(k, offsets), self._result(k, values))

    def _retrieve(self, k):
        """(offsets, values, the number of values), without their completion."""
        offsets, address = k.empty((k.n + 1,), _abi.CUA_I64)
        context = self._enter(k)
        total = ctypes.c_uint64()
        with self._lock:
            handle = self._ready(k, context)
            first = handle, k.n, k.ptr
            status = lib.cua_multimap_retrieve_n(*first, 0, address, None, ctypes.byref(total))
            check(status, "retrieve")
            while True:
                n = total.value
                values, at = k.empty((n,), self._value_code)
                status = lib.cua_multimap_retrieve_n(*first, n, address, at, ctypes.byref(total))
                check(status, "retrieve")
                # a kernel may have written meanwhile
                if total.value == n:
                    return offsets, values, n

    def __getitem__(self, key):
        if not is_number(key):
            raise TypeError("%r is not a number: see retrieve" % type(key).__name__)
        host = self._host_key(key)
        if host is None:
            raise KeyError(key)
        k = self._uploaded(host, self._key_code, self._like())
        _, values, n = self._retrieve(k)
        if not n:
            raise KeyError(key)
        return self._result(k, values)

    def __contains__(self, key: object) -> bool:
        k = self._one(key)
        if k is None:
            return False
        made, address = k.empty((1,), _abi.CUA_I64)
        self._call("count", k, lib.cua_multimap_count_n, 1, k.ptr, address)
        return self._downloaded(k, address, _abi.CUA_I64, 1)[0] > 0

    # Python would iterate by numbers from 0 on
    __iter__ = None

    def __len__(self) -> int:
        return self._number_of("len", lib.cua_multimap_size)

    def __bool__(self) -> bool:
        return len(self) > 0

    def items(self, *, like: ArrayLike = None) -> Items:
        """All pairs, in any order, as two arrays. Parameters and result as of `HashMap.items`."""
        view = self._like(like)
        codes = self._key_code, self._value_code
        _, made = self._pairs(
            "items", view, lib.cua_multimap_size, lib.cua_multimap_retrieve, codes
        )
        return Items(*self._results(view, made))
