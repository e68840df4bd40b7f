#!/bin/sh
# offsite-run PROGRAM [ARGUMENT...]: runs a program of the work as the work's user, in the working folder, and ends with its exit code.
# Standard input is passed on to its end; `< /dev/null` keeps it for oneself. What the program prints to standard output never becomes the
# validator's own output by itself, which may be a test report: where nothing takes it, it goes to standard error.
[ "$#" -gt 0 ] || { echo 'usage: offsite-run PROGRAM [ARGUMENT...]' >&2; exit 125; }
call=$(mktemp -d "$OFFSITE_CALLS/call-XXXXXXXXXX") || exit 125
printf '%s\0' "$PWD" "$@" > "$call/words" || exit 125
cat > "$call/input" || exit 125
echo "${call##*/}" > "$OFFSITE_CALLS/requests" || exit 125
# A link is there with its target or not at all.
until code=$(readlink "$call/code"); do sleep 0.05 2> /dev/null || sleep 1; done
cat "$call/stderr" >&2
if [ "$(readlink /proc/$$/fd/1)" = "$OFFSITE_STDOUT" ]; then cat "$call/stdout" >&2; else cat "$call/stdout"; fi
rm -rf "$call"
exit "$code"
