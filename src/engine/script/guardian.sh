# Starts the driver (the first argument) in bash, waits for it, and has the last word, so that the end of a script is known
# for certain even if it left its shell by `exec`, by a signal or through a trap of its own.
# Plain sh: dash starts in less than a millisecond.
#
# Standard input carries: a secret word; "kill" or "keep"; then what the driver reads. The last word is a line that begins
# with the secret:
#   K            processes survived being killed, so nothing was run
#   Z status oom devices   how the driver ended, the kernel's count of processes killed for memory ("-" if unknown),
#                          and whether the devices that scripts write to and read from are still devices (yes or no)

# When the client is cut off, the engine sends TERM to what it started. Ignoring it would be inherited by the script.
trap : TERM

word= others= ooms=-
IFS= read -r word
IFS= read -r others

# Kills everything but init and this shell: kill -1 spares its caller. The dying get some rounds to be gone in.
kill_others() {
  round=0
  while [ "$round" -lt 200 ]; do
    kill -9 -1 2> /dev/null
    alone=yes
    for dir in /proc/[0-9]*; do
      pid=${dir#/proc/}
      [ "$pid" = 1 ] || [ "$pid" = $$ ] && continue
      { read -r stat < "$dir/stat"; } 2> /dev/null || continue
      case ${stat##*) } in Z* | X*) ;; *) alone=no ;; esac
    done
    [ "$alone" = yes ] && return 0
    round=$((round + 1))
  done
  return 1
}

if [ "$others" = kill ] && ! kill_others; then
  printf '%s K\n' "$word"
  exit 0
fi

[ -n "$(command -v bash)" ] || echo 'there is no bash in this image'
# Nothing of this shell's own goes into the output, such as "Killed". The driver joins its two outputs by itself.
exec 2>&-
bash --norc --noprofile -c "$1" script 3<< END
$word
END
status=$?

# Control groups version 2, then 1.
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$file" ] || continue
  while read -r key value; do
    [ "$key" = oom_kill ] && ooms=$value
  done < "$file"
done
devices=yes
for device in null zero full random urandom; do
  [ -c "/dev/$device" ] || devices=no
done
printf '%s Z %s %s %s\n' "$word" "$status" "$ooms" "$devices"
