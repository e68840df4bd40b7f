# Starts the driver (the first argument) in bash, waits for it, and has the last word. So the end of a script
# is known for certain even if it left its shell by `exec`, by a signal or through a trap of its own. Plain
# sh: dash starts in less than a millisecond.
#
# Standard input carries a secret word, then what the driver reads. The last word is a line that begins with
# the secret:
#   Z status oom devices   how the driver ended, the kernel's count of processes killed for memory ("-" if
#                          unknown), and whether the devices of scripts are still devices (yes or no)

# When the client is cut off, the engine sends TERM to what it started. The script would inherit it if it were
# ignored.
trap : TERM

word= ooms=-
IFS= read -r word

[ -n "$(command -v bash)" ] || echo 'there is no bash in this image'
# Nothing of this shell's own goes into the output, such as "Killed". The driver joins its two outputs.
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
