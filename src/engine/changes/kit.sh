# Prints all that GNU find takes to run elsewhere: the program, its libraries and its loader. A line each: its
# name, and its content in base64. Fails where there is no GNU find.
set -e
find=$(readlink -f "$(command -v find)")
"$find" --version 2> /dev/null | grep -q GNU
print() {
  printf '%s ' "$1"
  base64 -w 0 < "$2"
  echo
}
print find "$find"
for library in $(ldd "$find" | grep -o '/[^ )]*'); do print "${library##*/}" "$library"; done
