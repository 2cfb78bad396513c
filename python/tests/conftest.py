# SPDX-License-Identifier: MIT
"""The seed of the tests and the kinds of arrays that they run with.

CUA_TEST_SEED=N replays a run. CUA_REQUIRE_GPU=1 makes missing GPU libraries an error.
"""

import os
import random
import zlib

import numpy
import pytest

import cuatomic

SEED = int(os.environ.get("CUA_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
QUICK = bool(os.environ.get("CUA_TEST_QUICK"))

try:
    import hypothesis
    from hypothesis import core

    core.global_force_seed = SEED
    hypothesis.settings.register_profile(
        "cuatomic", deadline=None, database=None, print_blob=True, max_examples=20 if QUICK else 60
    )
    hypothesis.settings.load_profile("cuatomic")
except ImportError:
    pass


def pytest_report_header(config):
    return ["seed: CUA_TEST_SEED=%d" % SEED, "library: %s" % (cuatomic.info(),)]


class Arrays:
    """A kind of arrays: makes them of numpy's, and numpy's of them."""

    def __init__(self, name, device, asarray, numpy_of, kind):
        self.name = name
        self.device = device
        self.asarray = asarray
        self.numpy = numpy_of
        self.kind = kind

    def check(self, x):
        """That a result is of this kind, and on this device."""
        assert isinstance(x, self.kind), "%s is no %s" % (type(x), self.name)
        if self.device != "cpu":
            assert str(x.device) in (self.device, "<CUDA Device 0>"), x.device
        return self.numpy(x)


def _numpy():
    return Arrays("numpy", "cpu", numpy.asarray, numpy.asarray, (numpy.ndarray, numpy.generic))


def _torch(device):
    torch = pytest.importorskip("torch")
    if device != "cpu":
        _require_gpu(torch.cuda.is_available())
    return Arrays(
        "torch",
        device,
        lambda x: torch.from_numpy(numpy.array(x)).to(device),
        lambda x: x.cpu().numpy(),
        torch.Tensor,
    )


def _cupy():
    _require_gpu(bool(cuatomic.info().devices))
    cupy = pytest.importorskip("cupy")
    return Arrays("cupy", "cuda:0", cupy.asarray, cupy.asnumpy, cupy.ndarray)


def _require_gpu(there):
    if not there:
        if os.environ.get("CUA_REQUIRE_GPU"):
            pytest.fail("there is no GPU: %s" % cuatomic.info().problem)
        pytest.skip("no GPU")


_MAKERS = {
    "numpy": _numpy,
    "torch-cpu": lambda: _torch("cpu"),
    "cupy": _cupy,
    "torch-cuda": lambda: _torch("cuda:0"),
}


@pytest.fixture(params=list(_MAKERS), scope="session")
def xp(request):
    """Each kind of arrays that is there."""
    return _MAKERS[request.param]()


@pytest.fixture
def rng(request):
    """Random numbers that depend on the seed and the test alone."""
    return numpy.random.default_rng([SEED, zlib.crc32(request.node.nodeid.encode())])
