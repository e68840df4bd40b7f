# Deletes the file and sees to it that it does not come back. History still holds it, and now has a commit more.
set -euo pipefail

git rm --quiet deploy.env
echo deploy.env >> .gitignore
git add .gitignore
git commit --quiet -m "Remove deploy.env"
