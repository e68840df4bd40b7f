# Rewrites all branches and tags without the file, then drops what would keep the old objects alive.
set -euo pipefail

# filter-branch waits seconds for the reader of its warning, which is about large and odd histories.
export FILTER_BRANCH_SQUELCH_WARNING=1
git filter-branch --index-filter 'git rm -q --cached --ignore-unmatch deploy.env' --tag-name-filter cat -- --all

git for-each-ref --format='delete %(refname)' refs/original | git update-ref --stdin
git reflog expire --expire=now --all
git gc --quiet --prune=now
