// `git log` no longer naming the file is not enough: reflogs, backup refs and loose objects keep the passphrase for
// weeks, and a history squashed into one commit would hide it as well.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ValidationContext, validate } from 'offsite/validator';

type Run = ValidationContext['run'];
type Reference = { commits: string[]; files: string[] };

const source = await readFile(join(import.meta.dirname, 'expected.json'), 'utf8');
const expected: Record<string, Reference> = JSON.parse(source);

async function git(run: Run, workspace: string, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run('git', ['-C', workspace, ...args]);
  assert.equal(exitCode, 0, stderr);
  return stdout.trim();
}

validate('no object holds the passphrase', async ({ run, workspace, variables }) => {
  const objects = await git(run, workspace, 'cat-file', '--batch-all-objects', '--batch', '--unordered');
  assert.ok(!objects.includes(String(variables.passphrase)), 'an object in .git still holds the passphrase');
});

validate('every commit kept its message, author and date', async ({ run, workspace }) => {
  for (const [reference, { commits }] of Object.entries(expected)) {
    const log = await git(run, workspace, 'log', '--format=%at %an <%ae> %s', reference);
    console.log(`${reference}\n${log}`);
    assert.deepEqual(log.split('\n'), commits, reference);
  }
});

validate('every other file is as it was', async ({ run, workspace }) => {
  for (const [reference, { files }] of Object.entries(expected)) {
    const tree = await git(run, workspace, 'ls-tree', '-r', '--format=%(objectname) %(path)', reference);
    assert.deepEqual(tree.split('\n'), files, reference);
  }
});
