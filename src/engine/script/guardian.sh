# Starts the loop (the first argument) with the driver (the second) in bash, waits for it, and writes the last
# mark. So the end of a script is known even if it left its shell by `exec`, by a signal or through its own
# trap. Written for plain sh: dash starts in less than a millisecond.
#
# Standard input carries a secret word, the driver's key and two words, then the driver's input. The last mark
# is a line that begins with the secret:
#   Z status oom devices   how the driver ended, with the first word if by 0; the kernel's count of processes
#                          killed for memory ("-" if unknown); and the second word if the devices of scripts
#                          are still devices ("no" if not)

# If the client is cut off, the engine sends TERM to the process it started. Do not ignore TERM here: the
# script would inherit that.
trap : TERM

word= key= ended= intact= ooms=-
read -r word key ended intact

# An image's PATH may begin with a folder that the graded work fills.
bash=$(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH command -v bash)
[ -n "$bash" ] || echo 'there is no bash in this image'
# Keeps this shell's own messages, such as "Killed", out of the output. The driver joins its two outputs.
exec 2>&-
"${bash:-bash}" --norc --noprofile -c "$1" script "$2" 3<< END
$word $key
END
status=$?
[ "$status" = 0 ] && status=$ended

# Control groups version 2, then 1.
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$file" ] || continue
  while read -r key value; do
    [ "$key" = oom_kill ] && ooms=$value
  done < "$file"
done
devices=$intact
for device in null zero full random urandom; do
  [ -c "/dev/$device" ] || devices=no
done
printf '%s Z %s %s %s\n' "$word" "$status" "$ooms" "$devices"
