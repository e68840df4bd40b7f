# Our own case: six commits on two branches, with an annotated tag. deploy.env comes in with the second commit and is
# changed in the fourth, each time together with another file, so that no commit becomes empty without it.
set -euo pipefail

git init --quiet --initial-branch main
git config user.name Offsite
git config user.email offsite@localhost

hour=10
commit() {
  # Fixed dates: the validator knows them.
  export GIT_AUTHOR_DATE="2024-05-0$((hour - 9))T$hour:00:00Z"
  export GIT_COMMITTER_DATE="$GIT_AUTHOR_DATE"
  git add .
  git commit --quiet -m "$1"
  hour=$((hour + 1))
}

echo "# Notes" > readme.md
commit "Start the notes"

echo "- a map of the harbour" > ideas.md
echo "PASSPHRASE={{passphrase}}" > deploy.env
commit "Collect the first ideas"

echo "- ask for opening hours" >> ideas.md
commit "Add opening hours"
git tag -a v1.0 -m "First edition"

echo "- walk along the quay" >> ideas.md
echo "TARGET=harbour" >> deploy.env
commit "Add a walk"

git switch --quiet -c draft
echo "- a chapter on tides" > draft.md
commit "Draft a chapter on tides"

git switch --quiet main
echo "Printed twice a year." >> readme.md
commit "Say when it is printed"
