import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { bench, sharedBench } from './shared-bench.ts';

/** What is there before the harness works. */
const prepare = `
mkdir -p keep/sub gone/deep emptied folder-mode replaced renamed-folder
for file in keep/a keep/sub/b gone/deep/c emptied/d replaced/old renamed-folder/e edited deleted renamed mode time; do
  echo "$file" > "$file"
done
printf 'a\\0b' > binary-edited; head -c 300000 /dev/zero | tr '\\0' x > large-edited`;

const run = `
echo more >> edited
rm deleted
mv renamed new-name
chmod +x mode
mkdir -p new/nested/folders; echo 1 > new/nested/folders/file
mkdir new-folder
rm -r gone
rm emptied/d
chmod 700 folder-mode
rm -r replaced; mkdir replaced; echo 2 > replaced/new
mv renamed-folder other-name
echo 3 > keep/passing; rm keep/passing
echo 4 > $'line\\nbreak.txt'
ln -s /etc/passwd passwd.txt
echo 5 > first.txt; ln first.txt second.txt
mkfifo pipe.txt
mkdir .offsite; echo forged > .offsite/trajectory.jsonl
echo 6 > .hidden.txt
printf 'a\\0c' > binary-edited; printf 'now\\0' > binary-new
head -c 300000 /dev/zero | tr '\\0' x > large-new; echo short > large-edited`;

sharedBench();
let result: TrialRecord;
beforeAll(async () => {
  result = await bench.trial(run, {
    prepare,
    verify: 'echo verified > edited',
    artifacts: ['**/*.txt', 'keep/**', '.offsite/*', 'edited'],
  });
});

function artifact(path: string): string | undefined {
  const found = result.artifacts?.find((one) => one.path === path);
  return found && readFileSync(bench.blobs.pathOf(found.sha256), 'utf8');
}

test.each([
  ['a small', 'echo hi > deep'],
  ['a large', 'cd /workspace; truncate -s 200M sparse'],
])(
  'a path in %s workspace so long that a copy leaves out what is below it is noted, and the rest is graded',
  async (_, last) => {
    const run = `for n in $(seq 30); do mkdir $(printf '%0200d' 1) && cd $(printf '%0200d' 1) || break; done; ${last}; touch /workspace/done`;
    const { events, verdict, cause } = await bench.trial(run, { verify: 'test -e done' });
    const notes = events?.flatMap((event) => (event.kind === 'note' ? [event.text] : []));
    expect([verdict, notes, cause]).toEqual([
      'passed',
      [expect.stringMatching(/^the workspace has a path of [34]\d{3} bytes/)],
      undefined,
    ]);
  },
);

test('changed files are those that were added, edited, deleted, renamed, or have another mode', () => {
  expect(result.filesChanged).toEqual(
    [
      'edited',
      'deleted',
      'renamed',
      'new-name',
      'mode',
      'new/nested/folders/file',
      'new-folder',
      'gone/deep/c',
      'emptied/d',
      'folder-mode',
      'replaced/new',
      'replaced/old',
      'renamed-folder/e',
      'other-name/e',
      'line\nbreak.txt',
      'passwd.txt',
      'first.txt',
      'second.txt',
      'pipe.txt',
      '.offsite/trajectory.jsonl',
      '.hidden.txt',
      'binary-edited',
      'binary-new',
      'large-edited',
      'large-new',
    ].sort(),
  );
});

describe('what changed', () => {
  const text = (sha256: string | undefined) =>
    sha256 === undefined ? undefined : readFileSync(bench.blobs.pathOf(sha256), 'utf8');
  const change = (path: string) => {
    const found = result.changes?.find((one) => one.path === path);
    return (
      found && {
        kind: found.kind,
        omitted: found.omitted,
        before: text(found.before?.content),
        after: text(found.after?.content),
      }
    );
  };

  test.each([
    ['edited', 'modified', 'edited\n', 'edited\nmore\n', undefined],
    ['deleted', 'deleted', 'deleted\n', undefined, undefined],
    ['new-name', 'added', undefined, 'renamed\n', undefined],
    ['renamed', 'deleted', 'renamed\n', undefined, undefined],
    ['second.txt', 'added', undefined, '5\n', undefined],
    ['gone/deep/c', 'deleted', 'gone/deep/c\n', undefined, undefined],
    ['new-folder', 'added', undefined, undefined, undefined],
    ['mode', 'modified', undefined, undefined, undefined],
    ['binary-edited', 'modified', undefined, undefined, 'binary'],
    ['binary-new', 'added', undefined, undefined, 'binary'],
    ['large-edited', 'modified', undefined, 'short\n', 'large'],
    ['large-new', 'added', undefined, undefined, 'large'],
  ])('%s is %s', (path, kind, before, after, omitted) => {
    expect(change(path)).toEqual({ kind, before, after, omitted });
  });

  test('names every changed path, with modes and targets of links', () => {
    expect(result.changes?.map(({ path }) => path)).toEqual(result.filesChanged);
    const of = (path: string) => result.changes?.find((one) => one.path === path);
    expect([of('mode')?.before?.mode, of('mode')?.after?.mode]).toEqual([0o644, 0o755]);
    expect(of('passwd.txt')?.after).toMatchObject({ type: 'symlink', linkTarget: '/etc/passwd' });
    expect(of('edited')).toMatchObject({ before: { byteSize: 7 }, after: { byteSize: 12 } });
  });

  test('leaves room for edited files, however many new ones a build makes', async () => {
    const { changes = [] } = await bench.trial(
      'mkdir out; for n in $(seq 300); do echo "new $n" > out/$n; done; echo more >> edited',
      { prepare, verify: 'true' },
    );
    const kept = changes.filter(({ after }) => after?.content !== undefined);
    expect(kept).toHaveLength(201);
    expect(kept.some(({ path }) => path === 'edited')).toBe(true);
    expect(changes.filter(({ omitted }) => omitted === 'room')).toHaveLength(100);
  });
});

describe('artifacts', () => {
  test('are the files that match, whatever their names', () => {
    expect(result.artifacts?.map(({ path }) => path).sort()).toEqual(
      [
        'line\nbreak.txt',
        'first.txt',
        'second.txt',
        '.hidden.txt',
        'keep/a',
        'keep/sub/b',
        'edited',
        '.offsite/trajectory.jsonl',
      ].sort(),
    );
    expect(artifact('line\nbreak.txt')).toBe('4\n');
  });

  test('never follow a link out of the workspace', () => {
    expect(artifact('passwd.txt')).toBeUndefined();
  });

  test('hold a file under each of its names', () => {
    expect([artifact('first.txt'), artifact('second.txt')]).toEqual(['5\n', '5\n']);
  });

  test('are taken before grading changes anything', () => {
    expect(artifact('edited')).toBe('edited\nmore\n');
  });

  test('are stored under the hash that is told of them', () => {
    for (const { path, sha256, byteSize } of result.artifacts ?? []) {
      const content = readFileSync(bench.blobs.pathOf(sha256));
      expect([path, createHash('sha256').update(content).digest('hex')]).toEqual([path, sha256]);
      expect(content.byteLength).toBe(byteSize);
    }
  });

  test('include the whole trajectory, which the harness cannot forge', () => {
    const lines = artifact('.offsite/trajectory.jsonl')?.trim().split('\n') ?? [];
    expect(lines.map((line) => JSON.parse(line))).toEqual(result.trajectory);
    expect(lines).toHaveLength(result.trajectory?.length ?? 0);
  });
});

test('a second name that is no UTF-8 is left out and named; the workspace is not taken for gone', async () => {
  const { artifacts, artifactsOmitted, filesChanged } = await bench.trial(
    "echo 7 > $'raw\\xff.txt'; ln $'raw\\xff.txt' $'raw\\xfe.txt'; echo 8 > plain.txt",
    { artifacts: ['*.txt'], verify: 'true' },
  );
  expect(artifacts?.map(({ path }) => path)).toContain('plain.txt');
  expect(artifactsOmitted).toHaveLength(1);
  expect(artifactsOmitted?.[0]).toMatch(/^raw\\xf[ef]\.txt$/);
  expect(filesChanged).toEqual(['plain.txt', 'raw\\xfe.txt', 'raw\\xff.txt']);
});
