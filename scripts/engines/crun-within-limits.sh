#!/bin/bash
# Podman sets the limits on open files and processes that it considers the highest. On a machine whose root
# may not raise its own limits, crun refuses these. This script replaces them by the limits of the machine.
files=$(ulimit -Hn)
processes=$(ulimit -Hu)
if ! ulimit -n 1048576 2> /dev/null; then
  file=
  before=
  for argument; do
    case $before in
      --bundle | -b) file=$argument/config.json ;;
      --process | -p) file=$argument ;;
    esac
    before=$argument
  done
  highest='"hard":1048576,"soft":1048576'
  [ -z "$file" ] || sed -i "$file" \
    -e "s/\"type\":\"RLIMIT_NOFILE\",$highest/\"type\":\"RLIMIT_NOFILE\",\"hard\":$files,\"soft\":$files/" \
    -e "s/\"type\":\"RLIMIT_NPROC\",$highest/\"type\":\"RLIMIT_NPROC\",\"hard\":$processes,\"soft\":$processes/"
fi
exec /usr/bin/crun "$@"
