import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TrialResult } from '../../src/record/trial-record.ts';
import { openTrialBench, type TrialBench } from './trial-bench.ts';

/** What is there before the harness works. */
const prepare = `
mkdir -p keep/sub gone/deep emptied folder-mode replaced renamed-folder
for file in keep/a keep/sub/b gone/deep/c emptied/d replaced/old renamed-folder/e edited deleted renamed mode time; do
  echo "$file" > "$file"
done`;

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
echo 6 > .hidden.txt`;

let bench: TrialBench;
let result: TrialResult;
beforeAll(async () => {
  bench = await openTrialBench();
  result = await bench.trial(run, {
    prepare,
    verify: 'echo verified > edited',
    artifacts: ['**/*.txt', 'keep/**', '.offsite/*', 'edited'],
  });
});
afterAll(() => bench[Symbol.asyncDispose]());

function artifact(path: string): string | undefined {
  const found = result.artifacts?.find((one) => one.path === path);
  return found && readFileSync(bench.blobs.pathOf(found.sha256), 'utf8');
}

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
    ].sort(),
  );
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
