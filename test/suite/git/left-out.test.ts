import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { PlannedSource } from '../../../src/suite/git/git-source.ts';
import { makeRepository, type TestRepository } from './repository.ts';
import { filesOf, suitePlaces } from './suite-sources.ts';

const { place, fetchFor, gitIn } = suitePlaces();
const names = ['app.js', 'docs/answers/a.md', 'docs/guide.md'];
const files = Object.fromEntries(names.map((name) => [name, `of ${name}\n`]));

let repository: TestRepository;
beforeEach(() => {
  repository = makeRepository(join(place.folder, 'repo'));
});

/** Writes a suite into a folder, and fetches the sources of its cases. */
async function sourcesIn(path: string, cases: string[]) {
  return [...(await fetchFor(path, cases, { allowOutside: [place.folder] })).fetched.byKey.values()];
}

function planned(source: Awaited<ReturnType<typeof sourcesIn>>[number] | undefined): PlannedSource {
  if (!source || 'problem' in source) throw new Error(source?.problem ?? 'no source');
  return source;
}

describe("the suite's own files are left out of its repository", () => {
  test('with their folder, from its commit too, and a commit without them has an id of its own', async () => {
    const original = repository.commit({
      ...files,
      'evals/suite.yaml': 'old\n',
      'evals/solve.sh': 'THE ANSWER\n',
      'evals/cases/other.patch': 'another\n',
    });
    const [found] = await sourcesIn(join(repository.path, 'evals'), [
      '  - { id: a, source: { git: .. }, verify: "true", solution: { file: solve.sh } }',
    ]);
    const source = planned(found);
    expect(place.notes).toEqual(['HEAD of ..: left out of the workspace: evals (3 files)']);
    expect(source.commit).toBe(original);
    expect(source.rebuilt).toMatch(/^[0-9a-f]{40}$/);
    expect(Object.keys(await filesOf(source))).toEqual(['app.js', 'docs', 'docs/answers', ...names.slice(1)]);

    const { git } = await gitIn(source);
    expect(git('log', '--all', '--format=%H %an %s')).toBe(`${source.rebuilt} a a commit`);
    expect(git('status', '--porcelain', '--branch')).toBe('## main');
    expect(git('fsck', '--strict')).toBe('');
    const answer = repository.git('rev-parse', 'HEAD:evals/solve.sh');
    const objects = git('cat-file', '--batch-all-objects', '--batch-check=%(objectname)');
    expect(objects).not.toContain(answer);
    expect(objects).not.toContain(original);

    const [again] = await sourcesIn(join(repository.path, 'evals'), [
      '  - { id: a, source: { git: .. }, verify: "true" }',
    ]);
    expect(again).toEqual(source);
  });

  test('also where the source is another copy of the repository, or only files', async () => {
    repository.commit({ ...files, 'evals/suite.yaml': 'old\n', 'evals/solve.sh': 'THE ANSWER\n' });
    repository.git('clone', '--quiet', '--bare', '.', join(place.folder, 'copy.git'));
    const [found] = await sourcesIn(join(repository.path, 'evals'), [
      '  - { id: a, source: { git: ../../copy.git, history: none }, verify: "true" }',
    ]);
    expect(Object.keys(await filesOf(planned(found)))).not.toContain('evals');
  });

  test('one by one where the suite is at the top, except for what a case puts into the workspace', async () => {
    const own = ['solve.sh', 'grade/v.js', 'grade/expected.txt', 'checks/t.sh', 'prompt.md'];
    repository.commit({
      ...files,
      ...Object.fromEntries([...own, 'suite.yaml', 'data.csv'].map((name) => [name, `of ${name}\n`])),
    });
    const [found] = await sourcesIn(repository.path, [
      '  - id: a',
      '    source: { git: . }',
      '    environment: { files: { data.csv: data.csv } }',
      '    validator: { file: grade/v.js, sourceFiles: [grade/expected.txt] }',
      '    solution: { command: [sh, /solution/solve.sh], files: { /solution/solve.sh: solve.sh } }',
      '  - id: b',
      '    tests: { folders: { /tests: checks }, command: [sh, /tests/t.sh], prints: pytest }',
    ]);
    const kept = Object.keys(await filesOf(planned(found))).filter((path) => path.includes('.'));
    expect(kept).toEqual(['app.js', 'data.csv', ...names.slice(1), 'prompt.md']);
  });

  test('with what leaveOut names, which must be there', async () => {
    repository.commit(files);
    const [found, missing] = await sourcesIn(place.suiteFolder, [
      '  - { id: a, source: { git: ../repo, leaveOut: ["docs/**/a.md", "*.js"] }, verify: "true" }',
      '  - { id: b, source: { git: ../repo, leaveOut: [doc] }, verify: "true" }',
    ]);
    expect(Object.keys(await filesOf(planned(found)))).toEqual(['docs', 'docs/guide.md']);
    expect(place.notes).toEqual(['HEAD of ../repo: left out of the workspace: docs/**/a.md, *.js (2 files)']);
    expect(missing).toEqual({
      problem: expect.stringMatching(/^"doc" matches no file of commit [0-9a-f]{40}$/),
      key: 'leaveOut',
    });
  });
});
