# ms 2.1.1 (MIT) has a pattern with `-?` and one digit where a negative decimal may have many: '-10.5h' gives undefined.
# Reported and fixed in https://github.com/vercel/ms/pull/111; https://github.com/vercel/ms/pull/117 then made '10-.5'
# undefined. Both are in 2.1.2. Checked by running both versions: '-10.5h' gives undefined in 2.1.1 and -37800000
# in 2.1.2, '10-.5' gives 10 in 2.1.1 and undefined in 2.1.2.
set -euo pipefail

tarball=$(npm pack --loglevel=error {{package}})
tar --extract --gzip --no-same-owner --strip-components=1 --file "$tarball"
rm "$tarball"

mkdir test
cat > test/negative.test.js <<'TEST'
const assert = require('node:assert/strict');
const { test } = require('node:test');
const ms = require('..');

test('a negative decimal of any length is read', () => {
  assert.equal(ms('-1.5h'), -5400000);
  assert.equal(ms('-10.5h'), -37800000);
  assert.equal(ms('-100.25'), -100.25);
});

test('a negative whole number is read', () => {
  assert.equal(ms('-3 days'), -259200000);
});

test('a sign without a number is not a duration', () => {
  assert.equal(ms('-'), undefined);
  assert.equal(ms('-h'), undefined);
});
TEST

# Fixed dates and names give this commit the same hash everywhere: the validator compares with it.
git init --quiet --initial-branch main
git config user.name Offsite
git config user.email offsite@localhost
git add .
GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z git commit --quiet -m "ms 2.1.1"
echo "$(git rev-parse HEAD) is the base"
test "$(git rev-parse HEAD)" = {{base}}
