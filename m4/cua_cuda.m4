# SPDX-License-Identifier: MIT

# CUA_CUDA
# Find nvcc, the CUDA runtime and the architectures to build for.
#
# AC_SUBST      NVCC NVCC_GENCODE NVCC_COMPRESS NVCC_CFLAGS NVCC_NO_LIBSTDCXX
#               CUDA_CPPFLAGS CUDA_LIBDIR CUDART_LIBS CUDART_PC_LIBS CUDART_NAME
# AC_DEFINE     CUA_HAVE_CUDA CUA_CUDA_ARCHS
# conditional   HAVE_CUDA
# for a summary cua_backends cua_archs_said cua_cudart_said cua_nvcc_said
#
# A failure is an error if an option or NVCC requested CUDA. Otherwise it gives a CPU build, with
# the reason in the summary.
AC_DEFUN([CUA_CUDA],
[AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
    [build the CUDA backend, with the toolkit in DIR; "no" leaves it out
     @<:@built if nvcc works@:>@])],
  [], [with_cuda=auto])
AC_ARG_WITH([cuda-arch],
  [AS_HELP_STRING([--with-cuda-arch=ARCH],
    [native, all-major, all, or a list such as 75,80,90 @<:@native if there is
     a GPU, else all-major@:>@])],
  [], [with_cuda_arch=default])
AC_ARG_WITH([cudart],
  [AS_HELP_STRING([--with-cudart=KIND],
    [link the CUDA runtime static or shared @<:@static@:>@])],
  [], [with_cudart=default])
AC_ARG_VAR([NVCC], [CUDA compiler; option -ccbin sets its host compiler])
AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags, after all others])

AS_CASE([$with_cudart], [default|static|shared], [],
  [AC_MSG_ERROR([--with-cudart=$with_cudart: choose static or shared])])
AS_CASE([$with_cuda_arch], [yes|no|''],
  [AC_MSG_ERROR([--with-cuda-arch needs native, all-major, all or a list such as 75,80,90])])

AS_IF([test "$with_cuda" = no && test "$with_cuda_arch" != default],
  [AC_MSG_ERROR([--with-cuda-arch=$with_cuda_arch contradicts --without-cuda; leave out either])])

# A list of architectures or a compiler implies a request for CUDA.
cua_cuda=$with_cuda
AS_IF([test "$cua_cuda" = auto && { test "$with_cuda_arch" != default || test -n "$NVCC"; }],
  [cua_cuda=yes])

cua_cuda_why=
cua_have_cuda=no
CUA_CUDA_ARCHS=
AS_IF([test "$cua_cuda" = no],
  [cua_cuda_why="not requested"],
  [_CUA_CUDA_FIND
   AS_IF([test -z "$cua_cuda_why"], [_CUA_CUDA_FOLDERS])
   AS_IF([test -z "$cua_cuda_why"], [_CUA_CUDA_ARCHS])
   AS_IF([test -z "$cua_cuda_why"], [_CUA_CUDA_COMPRESS])
   AS_IF([test -z "$cua_cuda_why"], [_CUA_CUDA_CFLAGS])
   AS_IF([test -z "$cua_cuda_why"], [_CUA_CUDA_LINK])
   AS_IF([test -z "$cua_cuda_why"], [cua_have_cuda=yes],
     [test "$cua_cuda" != auto],
       [AC_MSG_ERROR([CUDA was requested, but $cua_cuda_why])],
     [AC_MSG_WARN([no CUDA backend: $cua_cuda_why])])])

AM_CONDITIONAL([HAVE_CUDA], [test "$cua_have_cuda" = yes])
AS_IF([test "$cua_have_cuda" = yes],
  [AC_DEFINE([CUA_HAVE_CUDA], [1], [1 if the CUDA backend is built, else 0])
   cua_backends="CPU, CUDA"
   cua_archs_said=$CUA_CUDA_ARCHS
   cua_cudart_said=$cua_cudart
   cua_nvcc_said="$NVCC ($cua_nvcc_version)"],
  [AC_DEFINE([CUA_HAVE_CUDA], [0])
   cua_backends="CPU only (CUDA: $cua_cuda_why)"
   cua_archs_said=none
   cua_cudart_said=none
   cua_nvcc_said=none
   NVCC_GENCODE= NVCC_COMPRESS= NVCC_CFLAGS= CUDA_CPPFLAGS= CUDA_LIBDIR= CUDART_LIBS= CUDART_PC_LIBS= CUDART_NAME=])
AC_DEFINE_UNQUOTED([CUA_CUDA_ARCHS], ["$CUA_CUDA_ARCHS"],
  [architectures of the CUDA backend, empty without one])
AC_SUBST([CUA_HAVE_CUDA], [$cua_have_cuda])
AC_SUBST([cua_cuda_why])
AC_SUBST([NVCC_GENCODE])
AC_SUBST([NVCC_COMPRESS])
AC_SUBST([NVCC_CFLAGS])
AC_SUBST([NVCC_NO_LIBSTDCXX])
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([CUDA_LIBDIR])
AC_SUBST([CUDART_LIBS])
AC_SUBST([CUDART_PC_LIBS])
AC_SUBST([CUDART_NAME])
])

# _CUA_CUDA_FIND: find NVCC and its version.
AC_DEFUN([_CUA_CUDA_FIND],
[AS_CASE([$cua_cuda],
  [auto|yes],
    [# AC_PATH_PROG would drop the options that NVCC may hold, as CC may.
     AS_IF([test -z "$NVCC"],
       [AC_PATH_PROG([NVCC], [nvcc], [],
         [$PATH$PATH_SEPARATOR${CUDA_HOME-/usr/local/cuda}/bin$PATH_SEPARATOR${CUDA_PATH-/usr/local/cuda}/bin$PATH_SEPARATOR/usr/local/cuda/bin])])
     AS_IF([test -z "$NVCC"], [cua_cuda_why="nvcc was not found"])],
  [NVCC=$cua_cuda/bin/nvcc
   AS_IF([test ! -x "$NVCC"], [cua_cuda_why="there is no $NVCC"])])
AS_IF([test -z "$cua_cuda_why"],
  [AC_MSG_CHECKING([version of nvcc])
   cua_nvcc_version=`$NVCC --version 2>/dev/null | $SED -n 's/.*release \(@<:@0-9@:>@@<:@0-9.@:>@*\).*/\1/p' | $SED 1q`
   AC_MSG_RESULT([${cua_nvcc_version:-unknown}])
   AS_CASE([$cua_nvcc_version],
     [''], [cua_cuda_why="$NVCC does not print its version"],
     [?.*|10.*|11.@<:@0-7@:>@|11.@<:@0-7@:>@.*], [cua_cuda_why="nvcc is $cua_nvcc_version, older than 11.8"])])
])

# _CUA_CUDA_FOLDERS: find the headers and libraries of the CUDA runtime in the folders that nvcc
# searches.
AC_DEFUN([_CUA_CUDA_FOLDERS],
[AC_MSG_CHECKING([for the CUDA runtime's folders])
CUDA_CPPFLAGS= CUDA_LIBDIR= cua_cuda_static= cua_cuda_shared=
# nvcc prints each folder in quotes; a path may contain spaces.
$NVCC --dryrun -x cu /dev/null >conftest.dry 2>&1
cua_split='s/^#\$ *//
s/" *"/"\
"/g
s/^@<:@A-Z_@:>@*= *//
p'
$SED -n '/^#\$ *INCLUDES=/{
'"$cua_split"'
}' conftest.dry | $SED -n 's/^"\{0,1\}-I\(@<:@^"@:>@*\)".*/\1/p' >conftest.inc
$SED -n '/^#\$ *LIBRARIES=/{
'"$cua_split"'
}' conftest.dry | $SED -n 's/^"\{0,1\}-L\(@<:@^"@:>@*\)".*/\1/p' >conftest.lib
# gcc's folders last: a distribution may install the toolkit there.
echo /usr/include >>conftest.inc
$CC -print-search-dirs 2>/dev/null | $SED -n 's/^libraries: =*//p' | tr : '\n' >>conftest.lib
cua_cuda_include=
while read cua_dir; do
  AS_IF([test -f "$cua_dir/cuda_runtime_api.h"],
    [cua_cuda_include=`cd "$cua_dir" && pwd`
     break])
done <conftest.inc
AS_CASE([$cua_cuda_include], [''|/usr/include], [], [CUDA_CPPFLAGS="-I$cua_cuda_include"])
while read cua_dir; do
  AS_CASE([$cua_dir], [*/stubs|*/stubs/], [continue])
  AS_IF([test -f "$cua_dir/libcudart_static.a"], [cua_cuda_static=yes])
  AS_IF([test -f "$cua_dir/libcudart.so"], [cua_cuda_shared=yes])
  AS_IF([test -n "$cua_cuda_static$cua_cuda_shared"],
    [CUDA_LIBDIR=`cd "$cua_dir" && pwd`
     break])
done <conftest.lib
rm -f conftest.dry conftest.inc conftest.lib
AC_MSG_RESULT([${cua_cuda_include:-none} ${CUDA_LIBDIR:-none}])

cua_cudart=$with_cudart
AS_IF([test "$cua_cudart" = default],
  [AS_IF([test -n "$cua_cuda_static"], [cua_cudart=static], [cua_cudart=shared])])
AS_CASE([$cua_cudart],
  [static], [cua_cudart_lib=cudart_static cua_cudart_found=$cua_cuda_static],
  [cua_cudart_lib=cudart cua_cudart_found=$cua_cuda_shared])
AS_IF([test -z "$cua_cuda_include"], [cua_cuda_why="cuda_runtime_api.h was not found"],
  [test -z "$cua_cudart_found"], [cua_cuda_why="the $cua_cudart CUDA runtime was not found"])
AS_CASE([`$CC -print-multi-os-directory 2>/dev/null`:$CUDA_LIBDIR],
  [*:/usr/lib|*:/usr/lib64|*:/usr/lib/*-linux-gnu*], [cua_cuda_L=],
  [cua_cuda_L="-L$CUDA_LIBDIR "])
CUDART_LIBS="${cua_cuda_L}-l$cua_cudart_lib"
AS_IF([test "$cua_cudart" = static], [CUDART_LIBS="$CUDART_LIBS -ldl -lrt -lpthread"])
CUDART_PC_LIBS=$CUDART_LIBS
CUDART_NAME=$cua_cudart_lib
# For the dependencies of a shared library, ld searches the rpath-link folders and ignores -L.
AS_IF([test "$cua_cudart" = shared && test -n "$cua_cuda_L"],
  [CUDART_LIBS="$CUDART_LIBS -Wl,-rpath-link,$CUDA_LIBDIR"])
])

# _CUA_CUDA_ARCHS: set NVCC_GENCODE and CUA_CUDA_ARCHS.
AC_DEFUN([_CUA_CUDA_ARCHS],
[AC_MSG_CHECKING([for the architectures nvcc offers])
# The minimum is sm_70: older architectures lack scoped atomics and independent thread scheduling.
cua_offered=`$NVCC --list-gpu-arch 2>/dev/null | $SED -n 's/^compute_\(@<:@0-9@:>@*\)$/\1/p' |
  sort -n | while read cua_n; do test "$cua_n" -lt 70 || echo "$cua_n"; done | tr '\n' ' ' | $SED 's/ *$//'`
AC_MSG_RESULT([${cua_offered:-none}])
cua_list=
AS_IF([test -z "$cua_offered"], [cua_cuda_why="nvcc offers no architecture from sm_70 on"],
  [AC_MSG_CHECKING([for the GPU here])
   # Without a GPU, -arch=native only warns and uses another architecture.
   cua_native_out=`$NVCC -arch=native --dryrun -x cu /dev/null 2>&1`
   AS_CASE([$cua_native_out],
     [*"annot find valid GPU"*|*nvcc\ fatal*|*nvcc\ warning*native*], [cua_native=],
     [cua_native=`AS_ECHO(["$cua_native_out"]) | $SED -n 's/.*ptxas.* -arch=sm_\(@<:@0-9@:>@*\).*/\1/p' | sort -nu | tr '\n' ' ' | $SED 's/ *$//'`])
   AC_MSG_RESULT([${cua_native:-none}])
   AS_CASE([$with_cuda_arch],
     [default],
       [cua_list=$cua_native
        # An unsupported GPU must not fail a build that requested no architecture.
        for cua_n in $cua_native; do
          AS_CASE([" $cua_offered "], [*" $cua_n "*], [], [cua_list=])
        done
        AS_IF([test -z "$cua_list"], [_CUA_CUDA_MAJOR])],
     [native],
       [cua_list=$cua_native
        AS_IF([test -z "$cua_list"],
          [AC_MSG_ERROR([--with-cuda-arch=native: no GPU was found; choose from: $cua_offered])])],
     [all], [cua_list=$cua_offered],
     [all-major], [_CUA_CUDA_MAJOR],
     [cua_list=`AS_ECHO(["$with_cuda_arch"]) | tr ',;' '  ' | $SED 's/sm_//g;s/compute_//g'`
      # Sorted, so that the newest architecture is last: its PTX is kept.
      cua_list=`for cua_n in $cua_list; do echo "$cua_n"; done | sort -nu | tr '\n' ' ' | $SED 's/ *$//'`
      AS_IF([test -z "$cua_list"],
        [AC_MSG_ERROR([--with-cuda-arch=$with_cuda_arch: choose native, all-major, all, or from: $cua_offered])])])
   for cua_n in $cua_list; do
     # 90a and 100f are 90 and 100 with features of that chip or family only.
     AS_CASE([" $cua_offered "], [*" `AS_ECHO(["$cua_n"]) | $SED 's/@<:@af@:>@$//'` "*], [],
       [AC_MSG_ERROR([--with-cuda-arch=$with_cuda_arch: nvcc $cua_nvcc_version does not offer $cua_n; choose native, all-major, all, or from: $cua_offered])])
   done
   NVCC_GENCODE= cua_ptx=
   for cua_n in $cua_list; do
     NVCC_GENCODE="$NVCC_GENCODE -gencode=arch=compute_$cua_n,code=sm_$cua_n"
     # Later GPUs could not run PTX of 90a or 100f, so none is kept.
     AS_CASE([$cua_n], [*@<:@af@:>@], [], [cua_ptx=$cua_n])
   done
   CUA_CUDA_ARCHS=$cua_list
   AS_IF([test -n "$cua_ptx"],
     [NVCC_GENCODE="$NVCC_GENCODE -gencode=arch=compute_$cua_ptx,code=compute_$cua_ptx"
      CUA_CUDA_ARCHS="$CUA_CUDA_ARCHS +PTX$cua_ptx"])
   NVCC_GENCODE=`AS_ECHO(["$NVCC_GENCODE"]) | $SED 's/^ *//'`
   AC_MSG_CHECKING([for the architectures to build])
   AC_MSG_RESULT([$CUA_CUDA_ARCHS])])
])

# _CUA_CUDA_MAJOR: the lowest offered architecture of each major version.
AC_DEFUN([_CUA_CUDA_MAJOR],
[cua_list= cua_last=
for cua_n in $cua_offered; do
  cua_m=`expr $cua_n / 10`
  AS_IF([test "$cua_m" != "$cua_last"], [cua_list="$cua_list $cua_n" cua_last=$cua_m])
done
cua_list=`AS_ECHO(["$cua_list"]) | $SED 's/^ *//'`])

# _CUA_CUDA_COMPRESS: set NVCC_COMPRESS, which makes device code 4 to 6 times smaller. The drivers of
# CUDA 12 do not all read that compression, so nvcc must be version 13 or newer.
AC_DEFUN([_CUA_CUDA_COMPRESS],
[AC_MSG_CHECKING([whether nvcc compresses for size])
NVCC_COMPRESS=
AS_CASE(["$NVCC $NVCCFLAGS"], [*-compress-mode*|*-no-compress*], [],
  [AS_IF([test "`expr "$cua_nvcc_version" : '\(@<:@0-9@:>@*\)'`" -ge 13 &&
          $NVCC --compress-mode=size --dryrun -x cu /dev/null >/dev/null 2>&1],
     [NVCC_COMPRESS=--compress-mode=size])])
AC_MSG_RESULT([${NVCC_COMPRESS:-no}])
])

# _CUA_CUDA_CFLAGS: CFLAGS without the flags that nvcc's C++ host compiler refuses or that need the
# C++ runtime.
AC_DEFUN([_CUA_CUDA_CFLAGS],
[NVCC_CFLAGS= cua_optimize=
for cua_flag in $CFLAGS; do
  AS_CASE([$cua_flag],
    [-std=*|-ansi|-pedantic*|-Wpedantic|-Werror*|-flto*|-ffat-lto-objects], [],
    [-fsanitize*|-fno-sanitize*|-fexceptions|-Wl,*], [],
    [-Wstrict-prototypes|-Wmissing-prototypes|-Wold-style-definition], [],
    [-Wdeclaration-after-statement|-Wnested-externs|-Wbad-function-cast], [],
    [-Wpointer-sign|-Wc++-compat|-Wimplicit*|-Wjump-misses-init], [],
    [-Wc90-c99-compat|-Wc99-c11-compat|-Wold-style-declaration], [],
    # The last of several counts, but nvcc warns about the others.
    [-O|-Og|-Os|-Oz], [cua_optimize=-O1],
    [-Ofast], [cua_optimize=-O3],
    [-O*], [cua_optimize=$cua_flag],
    # nvcc would split such a word at its commas.
    [-Wp,*], [NVCC_CFLAGS="$NVCC_CFLAGS `AS_ECHO(["$cua_flag"]) | $SED 's/^-Wp,//;s/,/ /g'`"],
    [NVCC_CFLAGS="$NVCC_CFLAGS $cua_flag"])
done
NVCC_CFLAGS=`AS_ECHO(["$cua_optimize$NVCC_CFLAGS"]) | $SED 's/^ *//'`
])

# _CUA_CUDA_LINK: check that $CC links an object compiled by nvcc.
AC_DEFUN([_CUA_CUDA_LINK],
[AC_MSG_CHECKING([whether nvcc compiles and $CC links a program])
cat >conftest.cu <<'_CUAEOF'
#include <cuda_runtime_api.h>
__global__ void kernel(int *p) { *p = 1; }
int main(void)
{
	int n = 0;
	if (cudaGetDeviceCount(&n) == cudaSuccess && n < 0)
		kernel<<<1, 1>>>(&n);
	return 0;
}
_CUAEOF
# Without exceptions, RTTI and guarded statics, no code calls libstdc++.
NVCC_NO_LIBSTDCXX="-fno-exceptions -fno-rtti -fno-threadsafe-statics"
cua_try="$NVCC -forward-unknown-to-host-compiler $NVCC_GENCODE $NVCC_COMPRESS $CPPFLAGS $NVCC_NO_LIBSTDCXX $NVCC_CFLAGS $NVCCFLAGS -c -o conftest.$ac_objext conftest.cu"
AS_ECHO(["$cua_try"]) >&AS_MESSAGE_LOG_FD
eval "$cua_try" >conftest.err 2>&1
cua_tried=$?
cat conftest.err >&AS_MESSAGE_LOG_FD
AS_IF([test $cua_tried = 0],
  [AS_IF([$CC $CFLAGS $LDFLAGS -o conftest$ac_exeext conftest.$ac_objext $CUDART_LIBS $LIBS >&AS_MESSAGE_LOG_FD 2>&1], [],
    [cua_cuda_why="a program compiled by nvcc does not link (see config.log)"])],
  [cua_cuda_why=`grep -i -e error -e fatal conftest.err | $SED 1q`
   cua_cuda_why="nvcc does not compile a program (${cua_cuda_why:-see config.log})"])
rm -f conftest.err conftest.cu conftest.$ac_objext conftest$ac_exeext
AS_IF([test -z "$cua_cuda_why"], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])
])
