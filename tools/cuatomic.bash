# SPDX-License-Identifier: MIT
# Bash completion of the command cuatomic.

_cuatomic() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local word i command="" compares="" options
  COMPREPLY=()

  # Bash splits words at '=': "--backend", "=", "cp".
  if [ "$current" = "=" ]; then
    current=
  elif [ "$previous" = "=" ] && [ "$COMP_CWORD" -ge 2 ]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi

  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
    bench | demo | info | help)
      command=${command:-${COMP_WORDS[i]}}
      ;;
    --compare)
      compares=yes
      ;;
    esac
  done

  if [ -z "$command" ]; then
    mapfile -t COMPREPLY < <(compgen -W "bench demo help info --help --version" -- "$current")
    return
  fi
  if [ "$command" != bench ] && [ "$command" != demo ]; then
    options="--help"
    [ "$command" != info ] || options="$options --atomics --json"
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    return
  fi
  case $previous in
  -b | --backend)
    mapfile -t COMPREPLY < <(compgen -W "auto cpu cuda" -- "$current")
    return
    ;;
  -g | --group | -t | --threads | --device | --filter | --seconds | --size | --threshold)
    return
    ;;
  --against)
    compopt -o filenames 2>/dev/null || true
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
    ;;
  --from | --plot)
    compopt -o filenames 2>/dev/null || true
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
    ;;
  --csv | --json)
    # without '=' the option has no value
    if [ "${COMP_WORDS[COMP_CWORD]}" = "=" ] || [ "${COMP_WORDS[COMP_CWORD - 1]}" = "=" ]; then
      compopt -o filenames 2>/dev/null || true
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
    fi
    ;;
  esac
  case $current in
  -*)
    options="--backend= --threads= --help"
    if [ "$command" = demo ]; then
      options="$options --group="
    else
      options="$options --against= --compare --csv --device= --filter= --from= --json --list --plot= --quick --seconds= --size= --threshold="
    fi
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    for word in "${COMPREPLY[@]}"; do
      case $word in
      *=) compopt -o nospace 2>/dev/null || true ;;
      esac
    done
    ;;
  *)
    if [ "$command" = bench ] && [ -z "$compares" ]; then
      mapfile -t COMPREPLY < <(compgen -W "append atomics copy fill group group-by hashmap histogram latency launch locks malloc peer random read reduce scatter textbook write" -- "$current")
      return
    fi
    # quote file names with spaces
    compopt -o filenames 2>/dev/null || true
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    ;;
  esac
}

complete -F _cuatomic cuatomic
