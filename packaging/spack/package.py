# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Cuatomic(AutotoolsPackage, CudaPackage):
    """Locks, atomic read-modify-write operations, append buffers, reductions,
    histograms and hash tables, for use inside CUDA kernels and from C programs.
    Each host call has a CUDA backend and a CPU backend."""

    homepage = "https://example.org/cuatomic"
    url = "https://example.org/cuatomic/cuatomic-0.2.0.tar.xz"
    git = "https://example.org/cuatomic.git"

    # The submission adds maintainers(...), with accounts of GitHub.
    license("MIT")

    version("main", branch="main")
    # packaging/fill sets the checksum of the release.
    version("0.2.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("mpi", default=False, description="Build libcuatomic-mpi: groups of MPI processes")
    variant("python", default=False, description="Install the Python module")
    variant(
        "libs",
        default="shared,static",
        values=("shared", "static"),
        multi=True,
        description="Build shared libraries, static libraries, or both",
    )

    depends_on("c", type="build")
    # g++ is the host compiler of nvcc, and tests the headers
    depends_on("cxx", type="build", when="+cuda")
    depends_on("cxx", type="test")
    depends_on("pkgconfig", type="build")
    with when("@main"):
        depends_on("autoconf@2.69:", type="build")
        depends_on("automake@1.15:", type="build")
        depends_on("libtool", type="build")

    depends_on("jansson@2.7:")
    depends_on("mpi", when="+mpi")
    depends_on("check@0.12:", type="test")
    depends_on("libpng", type="test")
    depends_on("mpfr", type="test")
    depends_on("zlib-api", type="test")

    with when("+python"):
        extends("python@3.9:")
        depends_on("py-numpy", type="run")
        # the module loads the library
        requires("libs=shared")

    with when("+cuda"):
        depends_on("cuda@11.8:")
        for arch in CudaPackage.cuda_arch_values:
            if int(arch.rstrip("af")) < 70:
                conflicts(f"cuda_arch={arch}", msg="cuatomic needs compute capability 7.0")

    conflicts("platform=darwin")
    conflicts("platform=windows")

    def configure_args(self):
        spec = self.spec
        args = ["--without-libcuckoo", "--without-tbb", "--with-jansson"]
        args += self.enable_or_disable("libs")
        args += self.enable_or_disable("python")
        args += self.with_or_without("mpi")
        args += self.with_or_without("cuda", activation_value="prefix")
        if spec.satisfies("+mpi"):
            args.append(f"MPICC={spec['mpi'].mpicc}")
        if spec.satisfies("+python"):
            args.append(f"PYTHON={spec['python'].command.path}")
        if spec.satisfies("+cuda"):
            # The default of configure would depend on the GPU of the build machine.
            archs = [arch for arch in spec.variants["cuda_arch"].value if arch != "none"]
            args.append(f"--with-cuda-arch={','.join(archs) or 'all-major'}")
        return args

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        if self.run_tests:
            env.set("CUA_TEST_QUICK", "1")

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        if self.spec.satisfies("+python"):
            # The loader does not search the prefix for ctypes.
            env.set("CUATOMIC_LIBRARY", join_path(self.prefix.lib, "libcuatomic.so.0"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_command(self):
        Executable(join_path(self.prefix.bin, "cuatomic"))("demo", "-b", "cpu")
