# SPDX-License-Identifier: MIT
"""Compares the recipes of packaging/ and rpm/ with the tree. The current folder is the top of the tree.

A stub of Spack's API evaluates package.py for several variants. If the package py-rattler-build of PyPI is
installed, it renders the recipe of conda-forge for every variant.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types

import yaml


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def one(pattern, text, what):
    found = re.findall(pattern, text, re.M)
    assert len(set(found)) == 1, "%s: %s" % (what, found)
    return found[0]


# ---- facts of the tree ----

CONFIGURE_AC = read("configure.ac")
M4 = read("m4/cua_host.m4") + read("m4/cua_cuda.m4")
VERSION = ".".join(one(r"cua_%s\], \[(\d+)\]" % part, CONFIGURE_AC, part) for part in ("major", "minor", "patch"))
CHECK = one(r"\[check >= ([\d.]+)\]", M4, "check")
JANSSON = one(r"\[jansson >= ([\d.]+)\]", M4, "jansson")
PYTHON = one(r"AM_PATH_PYTHON\(\[([\d.]+)\]", M4, "python")
CUDA = one(r"older than ([\d.]+)\"", M4, "cuda")
ARCH = int(one(r"The minimum is sm_(\d+)", M4, "the lowest architecture"))
HELP = subprocess.run(["./configure", "--help"], check=True, capture_output=True, text=True).stdout


def check_options(text, what):
    """Each option of configure in the text is in the output of configure --help."""
    options = re.findall(r"--((?:with|without|enable|disable)-[a-z][a-z-]*)", text)
    assert options, "%s: no options" % what
    for option in options:
        name = re.sub("^without-", "with-", re.sub("^disable-", "enable-", option))
        other = name.replace("with-", "without-") if name.startswith("with-") else name.replace("enable-", "disable-")
        assert re.search(r"--(%s|%s)\b(?!-)" % (name, other), HELP), "%s: no option --%s" % (what, option)


# ---- rpm ----

SPEC = read("rpm/cuatomic.spec")
URL = one(r"^URL: +(\S+)$", SPEC, "URL")


def check_rpm():
    assert one(r"^Version: +(\S+)$", SPEC, "Version") == VERSION
    assert one(r"^License: +(\S+)$", SPEC, "License") == "MIT"
    assert "pkgconfig(check) >= %s\n" % CHECK in SPEC
    assert "pkgconfig(jansson) >= %s\n" % JANSSON in SPEC
    assert re.search(r"^%%changelog\n\* .* - %s-\d+$" % re.escape(VERSION), SPEC, re.M), "%changelog"
    check_options(re.sub(r"(?m)^#.*$", "", SPEC), "rpm")
    if not shutil.which("rpmspec"):
        print("rpmspec is not installed: the conditions of the spec are not evaluated")
        return
    for condition, present, absent in (
        ("--without cuda", "--without-cuda", "--with-cuda "),
        ("--with cuda", "--with-cuda --with-cuda-arch=all-major", "--without-cuda"),
        ("--with mpi", "%files openmpi-devel", "--without-mpi"),
        ("--without mpi", "--without-mpi", "%files openmpi"),
        ("--without check", "%install", "make check"),
        ("--without html", "%install", "install-html"),
    ):
        command = ["rpmspec", "--parse", *condition.split(), "rpm/cuatomic.spec"]
        parsed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert present in parsed and absent not in parsed, condition


# ---- Spack ----



class Spec:
    def __init__(self, **values):
        self.variants = {name: types.SimpleNamespace(value=value) for name, value in values.items()}

    def satisfies(self, text):
        name = text[1:]
        return name in self.variants and self.variants[name].value is (text[0] == "+")

    def __getitem__(self, name):
        return types.SimpleNamespace(
            prefix="/opt/" + name, mpicc="/opt/mpi/bin/mpicc", command=types.SimpleNamespace(path="/opt/python/bin/python3")
        )


class Recorder:
    """Keeps the directives of a package, each with the conditions around it."""

    def __init__(self):
        self.calls = []
        self.conditions = []

    def directive(self, name):
        def record(*args, **options):
            when = self.conditions + ([options.pop("when")] if "when" in options else [])
            self.calls.append((name, args, options, when))

        return record

    @contextlib.contextmanager
    def when(self, condition):
        self.conditions.append(condition)
        yield
        self.conditions.pop()

    def named(self, name):
        return [call for call in self.calls if call[0] == name]


class AutotoolsPackage:
    run_tests = False

    def _activation(self, words, name, activation_value=None):
        if name not in self.spec.variants:
            return []
        value = self.spec.variants[name].value
        declared = [call for call in self.recorder.named("variant") if call[1][0] == name]
        if isinstance(value, tuple):
            return ["--%s-%s" % (words[v not in value], v) for v in declared[0][2]["values"]]
        path = "=/opt/" + name if value and activation_value == "prefix" else ""
        return ["--%s-%s%s" % (words[not value], name, path)]

    def enable_or_disable(self, name, **options):
        return self._activation(("enable", "disable"), name, **options)

    def with_or_without(self, name, **options):
        return self._activation(("with", "without"), name, **options)


class CudaPackage:
    cuda_arch_values = tuple("10 35 37 50 52 60 61 62 70 72 75 80 86 89 90 90a 100 100a 100f 120 120f".split())


def load_spack():
    recorder = Recorder()
    api = types.ModuleType("spack.package")
    for name in ("version", "variant", "depends_on", "conflicts", "requires", "extends", "license", "maintainers"):
        setattr(api, name, recorder.directive(name))
    api.when = recorder.when
    api.run_after = api.on_package_attributes = lambda *args, **options: lambda function: function
    api.join_path = os.path.join
    api.Executable = api.EnvironmentModifications = object
    modules = {"spack": types.ModuleType("spack"), "spack.package": api}
    for path in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        modules[path] = types.ModuleType(path)
    for name, base in (("autotools", AutotoolsPackage), ("cuda", CudaPackage)):
        module = types.ModuleType("spack_repo.builtin.build_systems." + name)
        setattr(module, base.__name__, base)
        modules[module.__name__] = module
    sys.modules.update(modules)
    names = {"__name__": "package"}
    exec(compile(read("packaging/spack/package.py"), "packaging/spack/package.py", "exec"), names)
    names["Cuatomic"].recorder = recorder
    return names["Cuatomic"]


def configure_args(package, **values):
    instance = package()
    instance.prefix = types.SimpleNamespace(lib="/opt/cuatomic/lib", bin="/opt/cuatomic/bin")
    instance.spec = Spec(**values)
    return instance.configure_args()


def check_spack():
    package = load_spack()
    recorder = package.recorder
    versions = [call[1][0] for call in recorder.named("version")]
    assert versions == ["main", VERSION], versions
    assert package.url == "%s/cuatomic-%s.tar.xz" % (URL, VERSION), package.url
    assert package.homepage == URL
    assert [call[1] for call in recorder.named("license")] == [("MIT",)]
    needs = [call[1][0] for call in recorder.named("depends_on") + recorder.named("extends")]
    for need in ("check@%s:" % CHECK, "jansson@%s:" % JANSSON, "python@%s:" % PYTHON, "cuda@%s:" % CUDA):
        assert need in needs, "Spack: no %s" % need
    refused = [call[1][0] for call in recorder.named("conflicts") if call[3] == ["+cuda"]]
    old = ["cuda_arch=" + arch for arch in CudaPackage.cuda_arch_values if int(re.match(r"\d+", arch)[0]) < ARCH]
    assert refused == old, refused

    plain = dict(libs=("shared", "static"), python=False, mpi=False, cuda=False)
    cases = (
        ({}, ["--enable-shared", "--enable-static", "--disable-python", "--without-mpi", "--without-cuda"]),
        ({"libs": ("static",)}, ["--disable-shared", "--enable-static"]),
        ({"python": True}, ["--enable-python", "PYTHON=/opt/python/bin/python3"]),
        ({"mpi": True}, ["--with-mpi", "MPICC=/opt/mpi/bin/mpicc"]),
        ({"cuda": True, "cuda_arch": ("none",)}, ["--with-cuda=/opt/cuda", "--with-cuda-arch=all-major"]),
        ({"cuda": True, "cuda_arch": ("80", "90a")}, ["--with-cuda-arch=80,90a"]),
    )
    for change, expected in cases:
        args = configure_args(package, **{**plain, **change})
        assert set(expected) <= set(args), (change, args)
        assert len(args) == len(set(args)), args
        assert change.get("cuda") or not any("cuda-arch" in arg for arg in args), args
        check_options(" ".join(args), "Spack")

    class Environment(dict):
        set = dict.__setitem__

    instance = package()
    instance.prefix = types.SimpleNamespace(lib="/opt/cuatomic/lib")
    instance.spec = Spec(**{**plain, "python": True})
    environment = Environment()
    instance.setup_run_environment(environment)
    assert environment == {"CUATOMIC_LIBRARY": "/opt/cuatomic/lib/libcuatomic.so.0"}, environment


# ---- conda-forge ----

RECIPE = "packaging/conda/recipe.yaml"


def words(tree):
    """All strings of a tree of lists and mappings."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list):
        return [word for branch in tree for word in words(branch)]
    return [str(tree)]


def render():
    """The builds of each output by rattler-build, for each variant of variants.yaml."""
    import rattler_build

    recipe = rattler_build.Stage0Recipe.from_file(RECIPE)
    variants = rattler_build.VariantConfig.from_file("packaging/conda/variants.yaml")
    builds = {}
    for platform in ("linux-64", "linux-aarch64"):
        config = rattler_build.RenderConfig(platform=rattler_build.PlatformConfig(target_platform=platform))
        for variant in recipe.render(variants, config):
            package = variant.recipe.package.name
            builds.setdefault(str(package), []).append(platform + " " + str(variant.recipe.build.to_dict()["string"]))
    return builds


def check_conda():
    text = read(RECIPE)
    recipe = yaml.safe_load(text)
    assert recipe["schema_version"] == 1
    assert recipe["context"]["version"] == VERSION
    assert recipe["source"]["url"] == URL + "/cuatomic-${{ version }}.tar.xz"
    assert recipe["about"]["homepage"] == URL
    assert recipe["about"]["license"] == "MIT" and os.path.exists(recipe["about"]["license_file"])
    outputs = {output["package"]["name"]: output for output in recipe["outputs"] if "package" in output}
    staging = [output["staging"]["name"] for output in recipe["outputs"] if "staging" in output]
    assert sorted(outputs) == ["cuatomic", "cuatomic-tools", "libcuatomic", "libcuatomic-static"], sorted(outputs)
    needs = words([output.get("requirements", []) for output in recipe["outputs"]])
    for need in ("check >=" + CHECK, "jansson >=" + JANSSON, "python >=" + PYTHON):
        assert need in needs, "conda: no %s" % need
    for name, output in outputs.items():
        # a file belongs to one output
        assert output.get("inherit", staging[0]) in staging
        assert ("files" in output["build"]) == ("inherit" in output), name
    files = [file for output in outputs.values() for file in output["build"].get("files", [])]
    assert len(files) == len(set(files)), files
    scripts = [output["build"]["script"] for output in recipe["outputs"] if "script" in output["build"]]
    for script in scripts:
        path = "packaging/conda/" + script
        assert os.access(path, os.X_OK), path
        check_options(re.sub(r"(?m)^#.*$", "", read(path)), path)
    for example in re.findall(r"\$PREFIX/share/doc/cuatomic/(examples/\S+)", text):
        assert os.path.exists(example), example
    config = yaml.safe_load(read("packaging/conda/conda-forge.yml"))
    assert config["conda_build_tool"] == "rattler-build"

    variants = yaml.safe_load(read("packaging/conda/variants.yaml"))
    lengths = {len(variants[key]) for key in variants["zip_keys"][0]}
    assert len(lengths) == 1 and variants["cuda_compiler_version"][0] == "None"
    try:
        builds = render()
    except ImportError:
        print("py-rattler-build is not installed: the recipe of conda-forge is not rendered")
        return
    for name in outputs:
        versions = [version.replace(".", "") for version in variants["cuda_compiler_version"]]
        expected = ["cpu" if version == "None" else "cuda" + version for version in versions]
        kinds = sorted(re.sub("_h.*", "", build) for build in builds[name])
        if name == "cuatomic":
            assert len(kinds) == 1 and kinds[0].startswith("linux-64 py"), kinds
        else:
            platforms = ("linux-64 ", "linux-aarch64 ")
            assert kinds == sorted(platform + kind for platform in platforms for kind in expected), (name, kinds)
    print("rendered: %d builds of %d packages" % (sum(map(len, builds.values())), len(builds)))


def check_fill():
    """packaging/fill writes the checksum into both recipes, and refuses another version."""
    with tempfile.TemporaryDirectory() as folder:
        for version, status in ((VERSION, 0), ("99.0.0", 1)):
            tarball = "%s/cuatomic-%s.tar.xz" % (folder, version)
            with open(tarball, "wb") as file:
                file.write(b"a release")
            out = "%s/%s" % (folder, version)
            run = subprocess.run(["packaging/fill", tarball, out], capture_output=True, text=True)
            assert run.returncode == status, run
        checksum = hashlib.sha256(b"a release").hexdigest()
        for recipe in ("spack/package.py", "conda/recipe.yaml"):
            filled = read("%s/%s/%s" % (folder, VERSION, recipe))
            assert filled.count(checksum) == 1 and "0" * 64 not in filled, recipe


# ---- samples for CI systems ----


def check_samples():
    gpu_check = read("ci/gpu-check")
    variables = set(re.findall(r"^# (GPU_CHECK_[A-Z]+) ", gpu_check, re.M))
    used = set(re.findall(r"\$\{(GPU_CHECK_[A-Z]+)", gpu_check))
    table = set(re.findall(r"^\| `(GPU_CHECK_[A-Z]+)` \|", read("doc/gpu-runners.md"), re.M))
    assert variables == used == table, (variables ^ used, variables ^ table)
    for name in ("github-gpu.yml", "gitlab-gpu.yml"):
        text = read("packaging/ci/" + name)
        sample = yaml.safe_load(text)
        jobs = sample["jobs"] if "jobs" in sample else sample
        lines = "\n".join(words(jobs)).split("\n")
        commands = [line.split()[0] for line in lines if re.match(r"(\./|ci/)[a-z.-]+", line)]
        assert {"./quickstart", "./autogen.sh", "ci/gpu-check"} == set(commands), (name, commands)
        for command in commands:
            assert os.access(command, os.X_OK), command
        assert set(re.findall(r"GPU_CHECK_[A-Z]+", text)) <= variables, name
        assert "build-gpu/gpu-check-logs" in lines and "gpu-check.xml" in lines, name


for test in (check_rpm, check_spack, check_conda, check_fill, check_samples):
    test()
    print("ok: " + test.__name__)
