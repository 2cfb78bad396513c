# SPDX-License-Identifier: MIT

# CUA_INSTALL_FOLDERS
# The folders in the files for pkg-config and CMake, so that an installed copy can be moved.
#
# AC_SUBST  PC_PREFIX         the prefix: /usr, or the place of the .pc file and as many ".." as needed
#           PC_LIBDIR PC_INCLUDEDIR    by ${prefix}, if they are inside it
#           CMAKE_INCLUDEDIR  the headers, by the place of the library if both are inside the prefix
#           CUA_POINTER_SIZE
#
# A copy in /usr belongs to a distribution: pkg-config finds it in a sysroot by the absolute prefix,
# and leaves out the folders that the compiler searches anyway.
AC_DEFUN([CUA_INSTALL_FOLDERS],
[cua_prefix=$prefix
AS_IF([test "$cua_prefix" = NONE], [cua_prefix=$ac_default_prefix])
_CUA_IN_PREFIX([PC_LIBDIR], [libdir])
_CUA_IN_PREFIX([PC_INCLUDEDIR], [includedir])
_CUA_IN_PREFIX([cua_pkgconfigdir], [pkgconfigdir])
PC_PREFIX=$cua_prefix
AS_CASE([$cua_prefix:$cua_pkgconfigdir],
  [/usr:*], [],
  [*:'${prefix}/'*],
    [PC_PREFIX='${pcfiledir}'`AS_ECHO(["$cua_pkgconfigdir"]) | $SED 's:^@<:@^/@:>@*::
s:@<:@^/@:>@@<:@^/@:>@*:..:g'`])
CMAKE_INCLUDEDIR=$PC_INCLUDEDIR
AS_CASE([$PC_LIBDIR:$PC_INCLUDEDIR],
  ['${prefix}/'*:'${prefix}/'*],
    [CMAKE_INCLUDEDIR='${_cuatomic_libdir}'`AS_ECHO(["$PC_LIBDIR"]) | $SED 's:^@<:@^/@:>@*::
s:@<:@^/@:>@@<:@^/@:>@*:..:g'``AS_ECHO(["$PC_INCLUDEDIR"]) | $SED 's:^@<:@^/@:>@*::'`],
  [*:'${prefix}/'*],
    [CMAKE_INCLUDEDIR=$cua_prefix`AS_ECHO(["$PC_INCLUDEDIR"]) | $SED 's:^@<:@^/@:>@*::'`])
AC_SUBST([PC_PREFIX])
AC_SUBST([PC_LIBDIR])
AC_SUBST([PC_INCLUDEDIR])
AC_SUBST([CMAKE_INCLUDEDIR])
AC_CHECK_SIZEOF([void *])
AC_SUBST([CUA_POINTER_SIZE], [$ac_cv_sizeof_void_p])
])

# _CUA_IN_PREFIX(RESULT, VARIABLE)
# RESULT = the folder of VARIABLE, written by ${prefix} if it is inside cua_prefix.
AC_DEFUN([_CUA_IN_PREFIX],
[cua_folder=`
  prefix=$cua_prefix
  test "$exec_prefix" != NONE || exec_prefix=$prefix
  cua_folder=$$2
  for cua_round in 1 2 3 4; do
    eval cua_folder=\\"$cua_folder\\"
  done
  AS_ECHO(["$cua_folder"])`
AS_CASE([$cua_folder],
  ["$cua_prefix"/*], [$1='${prefix}'`AS_ECHO(["$cua_folder"]) | $SED "s|^$cua_prefix||"`],
  [$1=$cua_folder])
])
