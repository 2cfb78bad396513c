# SPDX-License-Identifier: MIT
# complete.zsh FOLDER LINE...: prints each line as zsh completes it, by the completions in the folder.
# An interactive zsh gets the lines; ^T completes its line, prints it in brackets, and empties it.

zmodload zsh/zpty
folder=$1
shift
zpty shell zsh -f -i
zpty -w shell "unset zle_bracketed_paste; PROMPT= RPROMPT= PROMPT_EOL_MARK="
zpty -w shell "fpath=($folder \$fpath); autoload -Uz compinit; compinit -u -D; setopt no_beep no_auto_list no_auto_menu"
zpty -w shell 'show() { zle complete-word; zle -M ""; print -rn -- "[$BUFFER]"; BUFFER=; }; zle -N show; bindkey "^T" show'
zpty -w shell 'print ready-"now"'
zpty -r shell out '*ready-now*'
for line; do
  zpty -n -w shell "$line"$'\x14'
  zpty -r shell out '*\[*\]'
  print -r -- "${${out##*\[}%\]*}"
done
zpty -d shell
