# SPDX-License-Identifier: MIT

# CUA_SANITIZER
# --enable-sanitizer=LIST: build the host code under compiler sanitizers.
AC_DEFUN([CUA_SANITIZER],
[AC_ARG_ENABLE([sanitizer],
  [AS_HELP_STRING([--enable-sanitizer=LIST],
    [build the host code with -fsanitize=LIST: thread, address, undefined or
     address,undefined])],
  [], [enable_sanitizer=no])
SANITIZER_FLAGS=
cua_sanitizer_said=no
AS_CASE([$enable_sanitizer],
  [no], [],
  [thread|address|undefined|address,undefined|undefined,address],
    [SANITIZER_FLAGS="-fsanitize=$enable_sanitizer -fno-omit-frame-pointer"
     cua_sanitizer_said=$enable_sanitizer
     # A report of undefined behaviour must fail the test.
     AS_CASE([$enable_sanitizer], [*undefined*],
       [SANITIZER_FLAGS="$SANITIZER_FLAGS -fno-sanitize-recover=undefined"])
     # -O2 would merge memory accesses that -O1 keeps apart.
     : ${CFLAGS="-g -O1"}],
  [AC_MSG_ERROR([--enable-sanitizer=$enable_sanitizer: choose thread, address, undefined or address,undefined])])
AC_SUBST([SANITIZER_FLAGS])
])

# CUA_TRY_CFLAG(FLAG, [VARIABLE = HOST_CFLAGS])
# Add FLAG to VARIABLE if the compiler accepts it.
AC_DEFUN([CUA_TRY_CFLAG],
[AC_MSG_CHECKING([whether $CC takes $1])
cua_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $1"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
  [AC_MSG_RESULT([yes])
   AS_VAR_APPEND(m4_default([$2], [HOST_CFLAGS]), [" $1"])],
  [AC_MSG_RESULT([no])])
CFLAGS=$cua_save_CFLAGS
])

# CUA_HOST_FLAGS
# The flags of every host object, and the link flags of the shared library.
AC_DEFUN([CUA_HOST_FLAGS],
[cua_cc_version=`$CC -dumpfullversion -dumpversion 2>/dev/null | $SED 1q`
HOST_CFLAGS=
# With contraction of x*y+z, the rounding of the CPU backend would depend on compiler and machine.
CUA_TRY_CFLAG([-std=gnu11])
CUA_TRY_CFLAG([-pthread])
CUA_TRY_CFLAG([-ffp-contract=off])
CUA_TRY_CFLAG([-fvisibility=hidden])
CUA_TRY_CFLAG([-Wall])
CUA_TRY_CFLAG([-Wextra])
CUA_TRY_CFLAG([-Wstrict-prototypes])
AS_VAR_APPEND([HOST_CFLAGS], [" $SANITIZER_FLAGS"])
AC_SUBST([HOST_CFLAGS])

# The tests compile in two thirds of the time without the debugger's map of inlined variables.
TEST_CFLAGS=$HOST_CFLAGS
CUA_TRY_CFLAG([-fno-var-tracking], [TEST_CFLAGS])
AC_SUBST([TEST_CFLAGS])

# clang expects the program to define the sanitizers' symbols, so a sanitized library cannot be
# linked with -z defs.
HOST_DEFS_LDFLAGS=-Wl,-z,defs
AS_IF([test -n "$SANITIZER_FLAGS"], [HOST_DEFS_LDFLAGS=])
AC_SUBST([HOST_DEFS_LDFLAGS])
])

# CUA_CHECK
# The check library. CHECK_CFLAGS and CHECK_LIBS replace the answer of pkg-config.
AC_DEFUN([CUA_CHECK],
[PKG_CHECK_MODULES([CHECK], [check >= 0.12],
  [cua_have_check=yes
   cua_check_said=yes],
  [cua_have_check=no
   cua_check_said="no (check not found)"])
AM_CONDITIONAL([HAVE_CHECK], [test "$cua_have_check" = yes])
PKG_INSTALLDIR
AC_ARG_WITH([bashcompletiondir],
  [AS_HELP_STRING([--with-bashcompletiondir=DIR],
    [folder of bash completions @<:@DATADIR/bash-completion/completions@:>@])],
  [], [with_bashcompletiondir='${datadir}/bash-completion/completions'])
AC_SUBST([bashcompletiondir], [$with_bashcompletiondir])
AC_ARG_WITH([fishcompletiondir],
  [AS_HELP_STRING([--with-fishcompletiondir=DIR],
    [folder of fish completions @<:@DATADIR/fish/vendor_completions.d@:>@])],
  [], [with_fishcompletiondir='${datadir}/fish/vendor_completions.d'])
AC_SUBST([fishcompletiondir], [$with_fishcompletiondir])
AC_ARG_WITH([zshcompletiondir],
  [AS_HELP_STRING([--with-zshcompletiondir=DIR],
    [folder of zsh completions @<:@DATADIR/zsh/site-functions@:>@])],
  [], [with_zshcompletiondir='${datadir}/zsh/site-functions'])
AC_SUBST([zshcompletiondir], [$with_zshcompletiondir])
])

# CUA_MPFR
# MPFR, an independent reference for the tests of exact sums.
AC_DEFUN([CUA_MPFR],
[MPFR_CPPFLAGS= MPFR_LIBS=
cua_mpfr_said=no
AC_CHECK_HEADER([mpfr.h],
  [AC_CHECK_LIB([mpfr], [mpfr_subnormalize],
    [MPFR_CPPFLAGS=-DTEST_MPFR=1
     MPFR_LIBS="-lmpfr -lgmp"
     cua_mpfr_said=yes], [], [-lgmp])])
AC_SUBST([MPFR_CPPFLAGS])
AC_SUBST([MPFR_LIBS])
])

# CUA_CPU_PEER(OPTION, NAME, VARIABLE, MACRO, PROGRAM, LIBS)
# A C++ library that is a peer in the hash map's benchmark. Only --with-OPTION requires it.
AC_DEFUN([CUA_CPU_PEER],
[AC_ARG_WITH([$1],
  [AS_HELP_STRING([--with-$1],
    [build the benchmark with $2 as peer @<:@if it is found@:>@])],
  [], [with_$1=check])
AS_CASE([$with_$1], [yes|no|check], [],
  [AC_MSG_ERROR([--with-$1=$with_$1: choose yes, no or check; CPPFLAGS=-IFOLDER sets its folder])])
$3=no
AS_IF([test "$with_$1" != no && test -n "$CXX"],
  [AC_MSG_CHECKING([for $2])
   AS_ECHO(["$5"]) >conftest.cc
   AS_IF([$CXX $CPPFLAGS $CXXFLAGS -std=c++17 -pthread conftest.cc $LDFLAGS $6 -o conftest$EXEEXT >&AS_MESSAGE_LOG_FD 2>&1],
     [$3=yes
      AC_DEFINE([$4], [1], [Define to 1 if the benchmark can use $2.])])
   rm -f conftest.cc conftest$EXEEXT
   AC_MSG_RESULT([$$3])])
AS_IF([test "$with_$1" = yes && test "$$3" = no],
  [AC_MSG_ERROR([$2 was requested, but was not found])])
])

# CUA_CPU_PEERS
# The peers of bench-maps, and TBB_LIBS.
AC_DEFUN([CUA_CPU_PEERS],
[AC_ARG_VAR([CXXFLAGS], [C++ compiler flags])
: ${CXXFLAGS="-g -O2"}
CUA_CPU_PEER([libcuckoo], [libcuckoo], [cua_have_cuckoo], [HAVE_LIBCUCKOO],
  [#include <libcuckoo/cuckoohash_map.hh>
int main() { libcuckoo::cuckoohash_map<int, int> map; return map.empty() ? 0 : 1; }])
CUA_CPU_PEER([tbb], [oneTBB], [cua_have_tbb], [HAVE_TBB],
  [#include <oneapi/tbb/concurrent_hash_map.h>
int main() { oneapi::tbb::concurrent_hash_map<int, int> map; return map.empty() ? 0 : 1; }], [-ltbb])
AS_IF([test "$cua_have_tbb" = yes], [TBB_LIBS=-ltbb], [TBB_LIBS=])
AC_SUBST([TBB_LIBS])
AM_CONDITIONAL([HAVE_CPU_PEERS],
  [test "$cua_have_cuckoo" = yes || test "$cua_have_tbb" = yes])
])

# CUA_ZLIB
# zlib, for the example kmer-count.
AC_DEFUN([CUA_ZLIB],
[ZLIB_LIBS=
cua_zlib_said="no (zlib not found)"
AC_CHECK_HEADER([zlib.h],
  [AC_CHECK_LIB([z], [inflateReset2],
    [ZLIB_LIBS=-lz
     cua_zlib_said=yes])])
AC_SUBST([ZLIB_LIBS])
AM_CONDITIONAL([HAVE_ZLIB], [test -n "$ZLIB_LIBS"])
])

# CUA_JANSSON
# jansson, which reads the files of cuatomic bench --compare.
AC_DEFUN([CUA_JANSSON],
[AC_ARG_WITH([jansson],
  [AS_HELP_STRING([--with-jansson], [build cuatomic bench --compare by jansson @<:@auto@:>@])],
  [], [with_jansson=auto])
AS_CASE([$with_jansson], [yes | no | auto], [],
  [AC_MSG_ERROR([--with-jansson=$with_jansson: choose yes, no or auto])])
cua_jansson_said="no (--without-jansson)"
AS_IF([test "$with_jansson" != no],
  [PKG_CHECK_MODULES([JANSSON], [jansson >= 2.7],
    [cua_jansson_said=yes
     AC_DEFINE([HAVE_JANSSON], [1], [Define to 1 if cuatomic bench --compare can read JSON.])],
    [cua_jansson_said="no (jansson not found)"])])
AS_IF([test "$with_jansson" = yes && test "$cua_jansson_said" != yes],
  [AC_MSG_ERROR([--with-jansson: $cua_jansson_said])])
AC_SUBST([JANSSON_CFLAGS])
AC_SUBST([JANSSON_LIBS])
])

# CUA_MPI
# MPI, for the library libcuatomic-mpi. MPICC has to compile with CC; Open MPI and MPICH take the
# compiler from the environment. MPIRUN is for the tests.
AC_DEFUN([CUA_MPI],
[AC_ARG_WITH([mpi],
  [AS_HELP_STRING([--with-mpi], [build libcuatomic-mpi by mpicc @<:@auto@:>@])],
  [], [with_mpi=auto])
AC_ARG_VAR([MPICC], [compiler of MPI programs, for libcuatomic-mpi])
AC_SUBST([MPI_LIBS])
AC_ARG_VAR([MPIRUN], [command that starts MPI programs, for the tests])
cua_have_mpi=no
cua_mpi_said="no (--without-mpi)"
AS_CASE([$with_mpi],
  [yes | no | auto], [],
  [AC_MSG_ERROR([--with-mpi=$with_mpi: choose yes, no or auto])])
AS_IF([test "$with_mpi" != no],
  [cua_mpi_said="no (mpicc not found)"
   AC_CHECK_PROGS([MPICC], [mpicc])
   AC_CHECK_PROGS([MPIRUN], [mpirun mpiexec])
   AS_IF([test -n "$MPICC"],
     [AC_MSG_CHECKING([whether $MPICC compiles MPI programs])
      cua_save_CC=$CC
      OMPI_CC=$CC MPICH_CC=$CC
      export OMPI_CC MPICH_CC
      CC=$MPICC
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
          [[MPI_Request r; return MPI_Iallreduce(MPI_IN_PLACE, 0, 0, MPI_UINT64_T, MPI_SUM, MPI_COMM_SELF, &r);]])],
        [cua_have_mpi=yes
         # libtool links by CC, so it needs the options of mpicc: those of Open MPI, or of MPICH
         for cua_word in `$MPICC --showme:link 2>&AS_MESSAGE_LOG_FD || $MPICC -link_info 2>&AS_MESSAGE_LOG_FD`; do
           AS_CASE([$cua_word], [-L* | -l* | -Wl,*], [MPI_LIBS="$MPI_LIBS $cua_word"])
         done],
        [cua_mpi_said="no ($MPICC does not compile MPI programs)"])
      CC=$cua_save_CC
      AC_MSG_RESULT([$cua_have_mpi])])])
AS_IF([test $cua_have_mpi = yes], [cua_mpi_said="yes ($MPICC)"])
AS_IF([test "$with_mpi$cua_have_mpi" = yesno],
  [AC_MSG_ERROR([--with-mpi: $cua_mpi_said])])
AM_CONDITIONAL([HAVE_MPI], [test $cua_have_mpi = yes])
])

# CUA_FUZZER
# A clang with libFuzzer for tests/fuzz. It may differ from the compiler of the library.
AC_DEFUN([CUA_FUZZER],
[AC_ARG_VAR([FUZZ_CC], [clang with libFuzzer, for tests/fuzz])
AC_CHECK_PROGS([FUZZ_CC], [clang clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14])
cua_fuzzer_said="no (clang not found)"
AS_IF([test -n "$FUZZ_CC"],
  [AC_MSG_CHECKING([whether $FUZZ_CC has libFuzzer])
   AS_ECHO(["int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size);
int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return size && *data > 255; }"]) >conftest.c
   AS_IF([$FUZZ_CC -fsanitize=fuzzer,address,undefined conftest.c -o conftest$EXEEXT >&AS_MESSAGE_LOG_FD 2>&1],
     [cua_fuzzer_said=$FUZZ_CC],
     [cua_fuzzer_said="no ($FUZZ_CC lacks it)"])
   rm -f conftest.c conftest$EXEEXT
   AS_CASE([$cua_fuzzer_said], [no*], [AC_MSG_RESULT([no])], [AC_MSG_RESULT([yes])])])
AM_CONDITIONAL([HAVE_FUZZER], [test "$cua_fuzzer_said" = "$FUZZ_CC"])
])

# CUA_PYTHON
# Python, for the package cuatomic, its wheel and its tests. --enable-python installs the package.
AC_DEFUN([CUA_PYTHON],
[AC_ARG_ENABLE([python],
  [AS_HELP_STRING([--enable-python],
    [install the Python package, which loads the installed library; a wheel
     needs no option])],
  [], [enable_python=no])
AS_CASE([$enable_python], [yes | no], [],
  [AC_MSG_ERROR([--enable-python=$enable_python: choose yes or no])])
AM_PATH_PYTHON([3.9], [], [PYTHON=:])
AS_IF([test "$enable_python" = yes && test "$PYTHON" = :],
  [AC_MSG_ERROR([--enable-python needs Python 3.9 or newer])])
AM_CONDITIONAL([INSTALL_PYTHON], [test "$enable_python" = yes])
AC_SUBST([INSTALL_PYTHON], [$enable_python])
cua_python_said="not installed"
AS_IF([test "$enable_python" = yes], [cua_python_said="installed (Python $PYTHON_VERSION)"])
])
