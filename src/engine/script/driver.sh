# Runs a script command by command in this one shell, and reports where each begins and ends. This file
# prepares the shell; the loop is in loop.sh.
#
# Descriptor 3 carries a secret word and a key; standard input carries the number of lines, then the lines,
# and then a number for each mark. The driver writes marks into the output. Each mark is a line that begins
# with the secret and a sum, so the script cannot print a fake one; mark-seal.ts says why there is a sum:
#   sum B first next micros  a command begins: its lines, counted from 0, and the time
#   sum E status 0 micros    it ended; 256 if the parser rejects the command
#   sum D 0 0 micros         no line is left
#   sum S yes 0 micros       before all others: 1 if no process of this user can read this shell, or 0
#
# Functions, options, traps, IFS and descriptors belong to the script: the driver calls `builtin` commands,
# prefixes its names, and saves and resets the script's options between commands.

__offsite_mark() {
  builtin local __offsite_sum=0 __offsite_field __offsite_micros
  # Microseconds since the epoch; the decimal sign depends on the locale. The script may set the variable.
  __offsite_micros=${EPOCHREALTIME//[!0-9]/}
  ((${#__offsite_micros} < 17)) || __offsite_micros=
  builtin printf -v __offsite_field %d "'$1"
  for __offsite_field in "$__offsite_field" "$2" "$3" "${__offsite_micros:-0}"; do
    __offsite_sum=$(((__offsite_sum + 10#$__offsite_field) % 2147483647 * __offsite_key % 2147483647))
  done
  __offsite_sum=$(((__offsite_sum + __offsite_pads[__offsite_marks]) % 2147483647))
  __offsite_marks=$((__offsite_marks + 1))
  builtin printf '%s %s %s %s %s %s\n' "$__offsite_secret" "$__offsite_sum" "$1" "$2" "$3" \
    "$__offsite_micros" >&"$__offsite_out"
}

# Parses $__offsite_text with the shell's own parser without running it. Sets $__offsite_message.
__offsite_parse() {
  __offsite_message=$(
    LC_ALL=C
    builtin eval $'builtin set -n\n'"$__offsite_text$1" 2>&1
  )
}

# Adds the next line to the text.
__offsite_take_line() {
  __offsite_text+=${__offsite_lines[__offsite_next]}$'\n'
  ((__offsite_next += 1))
}

# Skips to the word that ends a here-document: parsing after every line of a long one would be slow.
__offsite_take_document() {
  builtin local word=${__offsite_message#*'(wanted `'} line
  word=${word%%"')"*}
  while ((__offsite_next < __offsite_count)); do
    line=${__offsite_lines[__offsite_next]}
    [[ ${line##*$'\t'} == "$word" ]] && builtin break
    __offsite_take_line
  done
}

# Takes the lines of the next command: as many as the parser needs. Fails when there is none. Sets
# __offsite_first, __offsite_next, __offsite_text and __offsite_verdict (good or bad).
__offsite_take_command() {
  while ((__offsite_next < __offsite_count)); do
    [[ ${__offsite_lines[__offsite_next]} =~ ^[[:space:]]*(#.*)?$ ]] || builtin break
    ((__offsite_next += 1))
  done
  ((__offsite_next < __offsite_count)) || builtin return 1
  __offsite_first=$__offsite_next
  __offsite_text=
  while ((__offsite_next < __offsite_count)); do
    __offsite_take_line
    __offsite_verdict=good
    if __offsite_parse ''; then
      if [[ $__offsite_message == *here-document*'(wanted `'* ]]; then
        __offsite_take_document
        builtin continue
      fi
      # A backslash at the end continues the command in the next line. In a comment it does not, so a new
      # command may follow.
      [[ $__offsite_text =~ (^|[^\\])(\\\\)*\\$'\n'$ ]] || builtin return 0
      __offsite_parse 'if :; then :; fi' && builtin return 0
    else
      __offsite_verdict=bad
      # More lines cannot fix any other error.
      [[ $__offsite_message == *'unexpected end of file'* || $__offsite_message == *'unexpected EOF'* ]] ||
        builtin return 0
    fi
  done
  builtin return 0
}

# Ends the command that ran, if there is one. Call it right after the command, with its status in $?. Saves
# the script's options and resets them, so that they do not affect the driver's commands.
__offsite_end_command() {
  __offsite_last=$?
  __offsite_flags=${-//[!euxvfC]/}
  builtin set +euxvfC
  [[ -n $__offsite_running ]] || builtin return 0
  __offsite_running=
  if [[ $__offsite_verdict == bad ]]; then
    __offsite_last=2
    __offsite_mark E 256 0
  else
    __offsite_mark E "$__offsite_last" 0
  fi
}

# Puts the script's options before the command's text, and before them as many empty lines as the script has
# lines before the command: bash counts lines from the loop, which is line 1, and names them in its messages.
__offsite_prepare_text() {
  builtin local options
  options=${__offsite_flags:+builtin set -$__offsite_flags$'\n'}
  __offsite_text=${__offsite_newlines:0:__offsite_first - (${#options} > 0)}$options$__offsite_text
}

# Sets $?, so that a command sees the status of the one before it.
__offsite_status() { builtin return "$1"; }

# Plain `exec`, because with `builtin` its redirections would not last. That is safe: nothing of the script
# has run yet.
exec {__offsite_out}>&1 2>&1
# The shield protects this shell only; its commands must not load it.
builtin unset -v LD_PRELOAD
IFS=' ' builtin read -r __offsite_secret __offsite_key <&3
exec 3<&-
IFS= builtin read -r __offsite_count
__offsite_lines=()
((__offsite_count > 0)) && builtin mapfile -t -n "$__offsite_count" __offsite_lines
builtin mapfile -t -n $((2 * __offsite_count + 2)) __offsite_pads
__offsite_marks=0
builtin printf -v __offsite_newlines '%*s' "$__offsite_count" ''
__offsite_newlines=${__offsite_newlines// /$'\n'}
# Standard input is at its end here, so the script reads end-of-file without a file such as /dev/null.
__offsite_next=0
__offsite_running=
if (builtin : < "/proc/$$/environ") 2>&-; then __offsite_mark S 0 0; else __offsite_mark S 1 0; fi
__offsite_last=0
