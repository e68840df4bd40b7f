# Ends every process of the user that runs this, which is the work's, and makes the workspace $1 readable for the validator's group $2.
# Exits with 0 once none is left alive. It starts no program until then: the work may have used up all processes there may be.

# The user and the state of a process, by its folder in /proc.
look() {
  uid= state=
  while read -r key value rest; do
    case $key in
      State:) state=$value ;;
      Uid:) uid=${value%%[!0-9]*}; return 0 ;;
    esac
  done < "$1/status"
  return 1
} 2> /dev/null

look "/proc/$$" || exit 1
mine=$uid
round=0
while [ "$round" -lt 1000 ]; do
  # Sent to all at once: a process that is just being forked gets it too.
  kill -9 -1 2> /dev/null
  alone=yes
  for dir in /proc/[0-9]*; do
    [ "$dir" = /proc/1 ] || [ "$dir" = "/proc/$$" ] && continue
    look "$dir" && [ "$uid" = "$mine" ] || continue
    case $state in Z* | X*) ;; *) alone=no ;; esac
  done
  if [ "$alone" = yes ]; then
    # What it made is in the group $2, the validator's, by the folders it lies in, unless it came from elsewhere.
    find "$1" \( -type f -o -type d \) ! -perm -0004 \( ! -perm -0040 -o ! -group "$2" \) \
      -exec chmod a+rX {} + 2> /dev/null
    exit 0
  fi
  round=$((round + 1))
done
exit 1
