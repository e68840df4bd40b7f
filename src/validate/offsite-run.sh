#!/bin/sh
# offsite-run PROGRAM [ARGUMENT...]: runs a program of the work as the work's user, in the working folder, and
# exits with its exit code. Passes all of standard input to the program; `< /dev/null` keeps it for the
# caller. What the program prints never becomes the validator's own standard output, which may be a test
# report: if the caller does not redirect standard output, it goes to standard error.
[ "$#" -gt 0 ] || { echo 'usage: offsite-run PROGRAM [ARGUMENT...]' >&2; exit 125; }
call=$(mktemp -d "$OFFSITE_CALLS/call-XXXXXXXXXX") || exit 125
printf '%s\0' "$PWD" "$@" > "$call/words" || exit 125
cat > "$call/input" || exit 125
echo "${call##*/}" > "$OFFSITE_CALLS/requests" || exit 125
# A link appears together with its target, so the exit code is never half written.
until code=$(readlink "$call/code"); do sleep 0.05 2> /dev/null || sleep 1; done
cat "$call/stderr" >&2
if [ "$(readlink /proc/$$/fd/1)" = "$OFFSITE_STDOUT" ]; then
  cat "$call/stdout" >&2
else
  cat "$call/stdout"
fi
rm -rf "$call"
exit "$code"
