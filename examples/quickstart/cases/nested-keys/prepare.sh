# dset 3.1.3 (MIT) refuses the keys __proto__, constructor and prototype by comparing them with ===, and then uses them as
# property names, which makes them strings: a key ['__proto__'] passes the check and reaches Object.prototype.
# CVE-2024-21529 (GHSA-f6v4-cf5j-vf3w), fixed in 3.1.4. Checked by running both versions: in 3.1.3 all six builds pollute,
# in 3.1.4 none does.
set -euo pipefail

tarball=$(npm pack --loglevel=error {{package}})
tar --extract --gzip --no-same-owner --strip-components=1 --file "$tarball"
rm "$tarball"
# Left in the published archive from version 2; nothing refers to them.
rm dist/dset.js dist/dset.es.js dist/dset.min.js

mkdir test
cat > test/nested-keys.test.js <<'TEST'
const assert = require('node:assert/strict');
const { afterEach, test } = require('node:test');
const { dset } = require('dset');

afterEach(() => {
  delete Object.prototype.polluted;
});

test('a key inside an array does not reach Object.prototype', () => {
  dset({}, [['__proto__'], 'polluted'], true);
  assert.equal({}.polluted, undefined);
});

test('a nested path is written', () => {
  const target = { a: { b: 1 } };
  dset(target, 'a.c', 2);
  assert.deepEqual(target, { a: { b: 1, c: 2 } });
});
TEST

# Fixed dates and names give this commit the same hash everywhere: the validator compares with it.
git init --quiet --initial-branch main
git config user.name Offsite
git config user.email offsite@localhost
git add .
GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z git commit --quiet -m "dset 3.1.3"
echo "$(git rev-parse HEAD) is the base"
test "$(git rev-parse HEAD)" = {{base}}
