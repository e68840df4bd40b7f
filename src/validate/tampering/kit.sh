# Puts find, with all it needs to run, into the new folder $1. Prints the name of its loader there, when the file $2 was changed
# last, and which files of this sandbox were changed since, those below the further arguments left out.
set -e
kit=$1
old=$2
shift 2
find=$(readlink -f "$(command -v find)")
"$find" --version 2> /dev/null | grep -q GNU
mkdir -p "$kit"
cp "$find" "$kit/find"
for library in $(ldd "$find" | grep -o '/[^ )]*'); do cp -L "$library" "$kit/"; done
for file in "$kit"/ld-*; do printf '%s\0' "${file##*/}"; done
since=$("$find" "$old" -prune -printf %C@)
printf '%s\0' "$since"
for path; do
  shift
  set -- "$@" -path "$path" -o
done
exec "$find" / -xdev \( "$@" -path "$kit" \) -prune -o -newerct "@$since" ! -type d -printf '%C@ %p\0'
