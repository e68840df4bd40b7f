# Prints everything that GNU find needs to run elsewhere: the program, its libraries and its loader. One line
# each: its name, and its content in base64. Fails if there is no GNU find.
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
