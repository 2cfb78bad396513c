#compdef cuatomic
# SPDX-License-Identifier: MIT
# zsh completion of the command cuatomic. It is installed as _cuatomic.

local curcontext=$curcontext state
local -a line both names
both=(
  '(-b --backend)'{-b+,--backend=}'[where to run]:backend:(auto cpu cuda)'
  '(-h --help)'{-h,--help}'[print the usage]'
  '(-t --threads)'{-t+,--threads=}'[threads of the CPU backend]:threads: '
)

_arguments -C \
  '(-h --help)'{-h,--help}'[print the usage]' \
  '(-V --version)'{-V,--version}'[print the version]' \
  '1:command:((bench\:"measure a module and its peers" demo\:"run the calls on a file" help\:"print the usage" info\:"version, backends and devices"))' \
  '*::argument:->argument' && return
[[ $state = argument ]] || return

case $line[1] in
bench)
  names=('*:benchmark:(append atomics copy fill group group-by hashmap histogram latency launch locks malloc peer random read reduce scatter textbook write)')
  (($words[(I)--compare])) && names=('*:file:_files')
  _arguments $both \
    '--against=[compare the run with a reference]:reference:_files' \
    '--compare[compare two files of --json]' \
    '--csv=-[write the rows as CSV]::file:_files' \
    '--device=[GPU to run on]:GPU: ' \
    '--filter=[only rows that match]:regular expression: ' \
    '--from=[read the rows of a file of --json]:file:_files' \
    '--json=-[write the rows in JSON]::file:_files' \
    '--list[list the benchmarks]' \
    '(-q --quick)'{-q,--quick}'[short runs, only to test the benchmarks]' \
    '--plot=[draw the rows, as SVG or PNG]:file:_files' \
    '--seconds=[time of each benchmark]:seconds: ' \
    '--size=[size of the arrays of the benchmarks of memory]:bytes: ' \
    '--threshold=[difference that a comparison tolerates]:percent: ' \
    $names
  ;;
demo)
  _arguments $both '(-g --group)'{-g+,--group=}'[ranks of a group]:ranks: ' '*:file:_files'
  ;;
info)
  _arguments '(-h --help)'{-h,--help}'[print the usage]' \
    '--atomics[the implementation of each atomic operation]' \
    '--json[everything in JSON]'
  ;;
*)
  _arguments '(-h --help)'{-h,--help}'[print the usage]'
  ;;
esac
