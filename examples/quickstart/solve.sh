# What both profiles run in the workspace. A model would read the prompt; a program looks up the case's `project`.
set -euo pipefail

head -n 3 "$OFFSITE_PROMPT_FILE"

case "$project" in
  ms | dset)
    node "/opt/program/$project.mjs"
    ;;
  sales)
    cp /opt/program/report.py report.py
    python3 report.py
    ;;
  notes)
    bash /opt/program/notes.sh
    ;;
  *)
    echo "This program knows nothing about $project." >&2
    exit 1
    ;;
esac
