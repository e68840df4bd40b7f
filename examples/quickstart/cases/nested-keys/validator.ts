// One validation a build: a repair of dist/index.js alone passes the tests and leaves five ways in, of which bundlers
// (index.mjs), browsers (index.min.js) and users of dset/merge take one each.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type ValidationContext, validate } from 'offsite/validator';

type Run = ValidationContext['run'];

const builds = ['dist', 'merge'].flatMap((mode) =>
  ['js', 'mjs', 'min.js'].map((kind) => `${mode}/index.${kind}`),
);

async function probe(run: Run, build: string): Promise<{ polluted: string[]; written: unknown[] }> {
  const { exitCode, stdout, stderr } = await run('node', [join(import.meta.dirname, 'probe.mjs'), build]);
  assert.equal(exitCode, 0, stderr);
  return JSON.parse(stdout);
}

for (const build of builds) {
  validate(`${build} leaves prototypes alone`, async ({ run, workspace }) => {
    const { polluted } = await probe(run, join(workspace, build));
    assert.equal(polluted.length, 0, `Object.prototype was reached by ${polluted.join(', ')}`);
  });
}

validate('ordinary paths are still written', async ({ run, workspace }) => {
  for (const build of builds) {
    const { written } = await probe(run, join(workspace, build));
    const expected = [
      { a: { b: { c: 1 } } },
      { list: [{ name: 'first' }] },
      { a: { b: 1, c: 2 } },
      { list: ['x', 'y'] },
    ];
    assert.deepEqual(written, expected, `${build} writes something else`);
  }
});

validate('only the builds changed', async ({ run, workspace, variables }) => {
  const difference = await run('git', ['-C', workspace, 'diff', '--name-only', String(variables.base)]);
  assert.equal(difference.exitCode, 0, difference.stderr);
  const changed = difference.stdout.split('\n').filter(Boolean);
  assert.deepEqual(
    changed.filter((path) => !builds.includes(path)),
    [],
  );
});
