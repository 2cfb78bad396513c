# SPDX-License-Identifier: MIT
# fish completion of the command cuatomic.

set -l commands bench demo help info
set -l runs '__fish_seen_subcommand_from bench demo'
set -l measures '__fish_seen_subcommand_from bench'

complete -c cuatomic -f
complete -c cuatomic -s h -l help -d 'print the usage'
complete -c cuatomic -n "not __fish_seen_subcommand_from $commands" -s V -l version -d 'print the version'
complete -c cuatomic -n "not __fish_seen_subcommand_from $commands" -a bench -d 'measure a module and its peers'
complete -c cuatomic -n "not __fish_seen_subcommand_from $commands" -a demo -d 'run the calls on a file'
complete -c cuatomic -n "not __fish_seen_subcommand_from $commands" -a help -d 'print the usage'
complete -c cuatomic -n "not __fish_seen_subcommand_from $commands" -a info -d 'version, backends and devices'

complete -c cuatomic -n $runs -s b -l backend -x -a 'auto cpu cuda' -d 'where to run'
complete -c cuatomic -n $runs -s t -l threads -x -d 'threads of the CPU backend'
complete -c cuatomic -n '__fish_seen_subcommand_from demo' -s g -l group -x -d 'ranks of a group'
complete -c cuatomic -n '__fish_seen_subcommand_from demo' -F

complete -c cuatomic -n '__fish_seen_subcommand_from info' -l atomics -d 'the implementation of each atomic operation'
complete -c cuatomic -n '__fish_seen_subcommand_from info' -l json -d 'everything in JSON'

complete -c cuatomic -n $measures -s q -l quick -d 'short runs, only to test the benchmarks'
complete -c cuatomic -n $measures -l against -r -F -d 'compare the run with a reference'
complete -c cuatomic -n $measures -l compare -d 'compare two files of --json'
complete -c cuatomic -n $measures -l csv -d 'write the rows as CSV'
complete -c cuatomic -n $measures -l device -x -d 'GPU to run on'
complete -c cuatomic -n $measures -l filter -x -d 'only rows that match'
complete -c cuatomic -n $measures -l from -r -F -d 'read the rows of a file of --json'
complete -c cuatomic -n $measures -l json -d 'write the rows in JSON'
complete -c cuatomic -n $measures -l list -d 'list the benchmarks'
complete -c cuatomic -n $measures -l plot -r -F -d 'draw the rows, as SVG or PNG'
complete -c cuatomic -n $measures -l seconds -x -d 'time of each benchmark'
complete -c cuatomic -n $measures -l size -x -d 'size of the arrays of the benchmarks of memory'
complete -c cuatomic -n $measures -l threshold -x -d 'difference that a comparison tolerates'
complete -c cuatomic -n "$measures; and __fish_contains_opt compare" -F
complete -c cuatomic -n "$measures; and not __fish_contains_opt compare" \
  -a 'append atomics copy fill group group-by hashmap histogram latency launch locks malloc peer random read reduce scatter textbook write'
