# SPDX-License-Identifier: MIT
"""Types of parameters."""

from typing import Any, Literal, Union

ArrayLike = Any
"""An array of numpy, CuPy, PyTorch, JAX, Numba or Warp, an object with a buffer or an array
interface, or a list of numbers."""

Array = Any
"""An array of the same library as the arguments."""

DType = Any
"""The name of an element type, or a dtype of a library."""

Mode = Literal["fast", "fixed", "exact"]
DeviceLike = Union[str, int, None]
