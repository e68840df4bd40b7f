# What bash runs: the driver, which is the first argument, and then the script's commands. All lines are
# joined into one. So the shell counts the lines of each command from line 1, and its messages name the
# script's lines.
#
# A stray `continue` in the script goes to the inner condition, a stray `break` to the outer loop; both are
# harmless. The loop cannot be a function, because `declare` would be local there.
builtin eval "$1"; builtin shift;
until ((__offsite_next >= __offsite_count)); do
while { __offsite_end_command; } 2>&-; __offsite_take_command; do
__offsite_mark B "$__offsite_first" "$__offsite_next";
__offsite_running=yes;
__offsite_prepare_text;
__offsite_status "$__offsite_last";
builtin eval "$__offsite_text";
done; done;
{ __offsite_end_command; } 2>&-;
# No line is left. If this mark is missing, the script left this shell, or something ended the shell.
__offsite_mark D 0 0;
# Not 0: if a program of the script took that mark, this must not look like a script that left by `exit 0`.
builtin exit 121
