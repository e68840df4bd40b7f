# Looks for what grades or solves a case, in a sandbox in which no harness has run: at the contents of files,
# at what repositories and packs of git hold, and at all that again inside archives. Before this text come:
# `sizes`, for find; `keys`, lines of files to compare; known(), which leaves lines with hashes of files;
# ids(), which prints those of git; `later`, whether commits are looked for; the limits `most_bytes`,
# `most_text`, `most_texts`, `most_archives`, `most_seconds` and `most_shown`. Prints `file HASH PATH`,
# `text - PATH` and its lines, `blob ID PLACE`, `commit ID SUBJECT`, `commits COUNT REPOSITORY`,
# `bundle - PATH`, `unpacked FOLDER PATH`, `unread - PATH` or `missing PROGRAM WHERE`, and at last `searched`.
set -f
w=$1 base=$2
has() { command -v "$1" > /dev/null; }

pruned='-path /proc -o -path /sys -o -path /dev -o -path /run -o -path /boot -o -path /offsite
  -o -path /bin -o -path /sbin -o -path /lib -o -path /lib64 -o -path /usr/bin -o -path /usr/sbin
  -o -path /usr/lib -o -path /usr/lib64 -o -path /usr/libexec -o -path /usr/share -o -path /usr/include
  -o -path /usr/local/bin -o -path /usr/local/lib -o -path /usr/local/include -o -path /var/lib -o -path /var/cache'

# Runs find in a folder; without one, in the workspace, and then in everything else but the system.
within() {
  root=$1; shift
  if [ -n "$root" ]; then find "$root" -path '*.git/objects' -prune -o "$@"; else
    find "$w" -xdev -path '*.git/objects' -prune -o "$@"
    find / -xdev \( $pruned -o -path "$w" -o -path '*.git/objects' \) -prune -o "$@"
  fi 2> /dev/null < /dev/null
}

look() { # FOLDER DEPTH
  [ -z "$sizes" ] || within "$1" -type f \( $sizes \) -exec sha256sum {} + | sed 's/^\\//' | known | sed 's/^/file /'
  [ -z "$keys" ] || texts "$1"
  repositories "$1"
  [ "$2" -lt 4 ] && [ -n "$unpacks" ] || return 0
  list=$(packed "$1")
  [ -n "$list" ] || return 0
  echo "$list" | (
    n=0
    while IFS= read -r line; do
      n=$((n + 1))
      look_into "${line%% *}" "${line#* }" "$2" < /dev/null
    done
  )
}

texts() { # FOLDER
  within "$1" -type f -size -$((most_text + 1))c -exec grep -lF -e "$keys" {} + | {
    n=0
    while IFS= read -r path; do
      n=$((n + 1))
      if [ $n -gt "$most_texts" ]; then echo "unread - $path"; else
        echo "text - $path"
        sed 's/^/| /' "$path"
        echo
      fi
    done
  }
}

repositories() { # FOLDER
  if [ -n "$1" ]; then find "$1" -path '*.git/objects/*' -prune -o -type d -name objects -print; else
    find "$w" / -xdev \( $pruned -o -path '*.git/objects/*' \) -prune -o -type d -name objects -print
  fi 2> /dev/null < /dev/null | sort -u | while IFS= read -r objects; do
    g=${objects%/objects}
    if ! has git; then [ ! -f "$g/HEAD" ] || echo "missing git $g"
    elif [ -f "$g/HEAD" ]; then
      blobs_in "$g" "$g"
      if [ -n "$later" ]; then later_commits "$g"; fi
    elif [ -d "$objects/pack" ] && d=$(mktemp -d); then
      git init -q --bare "$d" && (export GIT_OBJECT_DIRECTORY="$objects"; blobs_in "$d" "$objects")
      rm -rf "$d"
    fi
  done
}

blobs_in() { # REPOSITORY PLACE
  ids | git --git-dir="$1" cat-file --batch-check='%(objectname)' 2> /dev/null | grep -v ' ' |
    while read -r id; do echo "blob $id $2"; done
}

# Also commits that no branch, tag or reflog names. Other repositories count if they have the same commit.
later_commits() { # REPOSITORY
  [ -n "$head" ] && git --git-dir="$1" cat-file -e "$head" 2> /dev/null < /dev/null || return 0
  found=$({ git --git-dir="$1" rev-list "$head"; git --git-dir="$1" cat-file --batch-all-objects --unordered \
    --batch-check='%(objecttype) %(objectname)' | sed -n 's/^commit //p'; } 2> /dev/null < /dev/null | sort | uniq -u)
  [ -n "$found" ] || return 0
  echo "$found" | git --git-dir="$1" log --stdin --not "$head" --format='%ct %H %s' 2> /dev/null | {
    n=0
    while read -r at id subject; do
      [ "$at" -ge "$after" ] || continue
      n=$((n + 1))
      [ $n -le "$most_shown" ] && echo "commit $id $subject"
    done
    [ $n -eq 0 ] || echo "commits $n $1"
  }
}

later_bundle() { # BUNDLE
  git -C "$w" bundle list-heads "$1" 2> /dev/null | while read -r id _; do
    git -C "$w" merge-base --is-ancestor "$id" "$head" 2> /dev/null < /dev/null && continue
    at=$(git -C "$w" show -s --format=%ct "$id^{commit}" 2> /dev/null < /dev/null)
    [ "${at:-$after}" -lt "$after" ] || echo other
  done | grep -q other && echo "bundle - $1"
}

# Prints `KIND PATH` of what can be unpacked, by its first bytes: a name may say something else.
packed() { # FOLDER
  within "$1" -type f -size +511c -exec sh -c "$first_bytes" 264 {} +
  within "$1" -type f -size +19c -size -512c -exec sh -c "$first_bytes" 8 {} +
}

first_bytes='
kinds() {
  head -qc "$0" "$@" | od -An -v -tx1 -w"$0" | grep -nE "$magic" | while IFS=": " read -r number bytes; do
    eval "path=\${$number}"
    case $bytes in
      "1f 8b 08"*) kind=gz ;;
      "50 4b 03 04"*) kind=zip ;;
      "fd 37 7a 58 5a 00"*) kind=xz ;;
      "42 5a 68 3"*) kind=bz2 ;;
      "28 b5 2f fd"*) kind=zst ;;
      "37 7a bc af 27 1c"*) kind=7z ;;
      "50 41 43 4b 00 00 00"*) kind=pack ;;
      "23 20 76 3"*) kind=bundle ;;
      *) kind=tar ;;
    esac
    printf "%s %s\n" "$kind" "$path"
  done
}
readable=yes
for f; do [ -r "$f" ] || readable=; done
if [ "$readable" ]; then kinds "$@"; else for f; do [ ! -r "$f" ] || kinds "$f"; done; fi'

export magic='^ *(1f 8b 08|50 4b 03 04|fd 37 7a 58 5a 00|42 5a 68 3[1-9] 31 41 59|28 b5 2f fd|37 7a bc af 27 1c|50 41 43 4b 00 00 00|23 20 76 3[23] 20 67 69 74|([0-9a-f]{2} ){257}75 73 74 61 72)'

look_into() { # KIND PATH DEPTH
  case $1 in pack | bundle) has git || return 0 ;; esac
  if [ "$1" = bundle ] && [ -n "$later" ] && [ -n "$head" ]; then later_bundle "$2"; fi
  spent=$(($(date +%s) - begun))
  if [ $n -gt "$most_archives" ] || [ $spent -gt "$most_seconds" ] || [ "$(wc -c < "$2")" -gt "$most_bytes" ] ||
    ! d=$(mktemp -d 2> /dev/null); then echo "unread - $2"; return; fi
  name=${2##*/}
  unpack "$1" "$2" "$d" "${name%.*}" 2> /dev/null
  held=$d
  case $1 in pack | bundle) held=$d/objects/pack ;; esac
  if [ -z "$(find "$held" -type f 2> /dev/null | head -n 1)" ]; then echo "unread - $2"
  elif [ "$held" != "$d" ]; then blobs_in "$d" "$2"
  else
    echo "unpacked $d $2"
    look "$d" $(($3 + 1))
  fi
  chmod -R u+rwX "$d" 2> /dev/null
  rm -rf "$d"
}

unpack() { # KIND PATH FOLDER NAME
  case $1 in
    gz) expand gzip gzip < "$2" > "$3/$4" ;;
    xz) expand xz lzma < "$2" > "$3/$4" ;;
    bz2) expand bzip2 bz2 < "$2" > "$3/$4" ;;
    zst) expand zstd compression.zstd < "$2" > "$3/$4" ;;
    tar) if has tar; then tar -xf "$2" -C "$3"; else python3 -m tarfile -e "$2" "$3"; fi ;;
    zip)
      if has unzip; then unzip -qqo -P '' "$2" -d "$3"
      elif has python3; then python3 -m zipfile -e "$2" "$3"
      else others "$2" "$3"; fi ;;
    7z) others "$2" "$3" ;;
    pack) git_pack "$3" < "$2" ;;
    bundle) sed '1,/^$/d' "$2" | git_pack "$3" ;;
  esac
}

expand() { # PROGRAM MODULE
  if has "$1"; then "$1" -dc
  else python3 -c "import sys, shutil, $2 as m; shutil.copyfileobj(m.open(sys.stdin.buffer), sys.stdout.buffer)"; fi |
    head -c "$most_bytes"
}

others() { # PATH FOLDER
  for program in 7z 7za 7zr 7zz bsdtar jar; do has $program && break; done
  case $program in
    bsdtar) bsdtar -xf "$1" -C "$2" ;;
    jar) cd "$2" && jar -xf "$1" ;;
    *) $program x -y -p -o"$2" "$1" > /dev/null ;;
  esac
}

# A bundle may have only what differs from commits that the repository of the workspace has.
git_pack() { # FOLDER
  git init -q --bare --template= "$1"
  GIT_ALTERNATE_OBJECT_DIRECTORIES=$(git -C "$w" rev-parse --absolute-git-dir)/objects \
    git --git-dir="$1" index-pack --stdin --fix-thin > /dev/null
}

for program in find grep head sed sha256sum sort uniq wc; do
  has $program || { echo "missing $program"; echo searched; exit 0; }
done
unpacks=yes
for program in od mktemp chmod rm; do
  has $program || { echo "missing $program archives"; unpacks=; }
done
begun=$(date +%s)
head='' after=0
if has git; then
  head=$(git -C "$w" rev-parse -q --verify HEAD 2> /dev/null)
  after=$([ -n "$base" ] && git -C "$w" show -s --format=%ct "$base^{commit}" 2> /dev/null)
  after=${after:-0}
fi
look '' 0 < /dev/null
echo searched
