// Asks more than the tests do. The tempting repair (let the digits after the minus sign repeat) passes the tests and
// leaves '10-5m' a duration of ten minutes: the second half of the defect, which 2.1.2 fixed as well.
import assert from 'node:assert/strict';
import { type ValidationContext, validate } from 'offsite/validator';

type Run = ValidationContext['run'];

/** What the package in the workspace makes of each text, in a process of its own; null stands for undefined. */
async function durations(run: Run, workspace: string, texts: string[]): Promise<unknown> {
  const program = `
    const [, workspace, ...texts] = process.argv;
    const ms = require(workspace);
    console.log(JSON.stringify(texts.map((text) => ms(text) ?? null)));`;
  const { exitCode, stdout, stderr } = await run('node', ['-e', program, '--', workspace, ...texts]);
  assert.equal(exitCode, 0, stderr);
  return JSON.parse(stdout);
}

validate('negative decimals are read', async ({ run, workspace }) => {
  const found = await durations(run, workspace, [
    '-10.5h',
    '-100.5 minutes',
    '-12345.75',
    '-.5s',
    '-0.5h',
    '-0010.50ms',
  ]);
  assert.deepEqual(found, [-37_800_000, -6_030_000, -12_345.75, -500, -1_800_000, -10.5]);
  return found;
});

validate('a minus sign inside a number is not a duration', async ({ run, workspace }) => {
  for (const text of ['10-5m', '10-.5', '1-1h', '5-', '--5m', '-5-5m', '1.5.5h']) {
    assert.deepEqual(await durations(run, workspace, [text]), [null], `ms('${text}') must be undefined`);
  }
});

validate('what worked before still works', async ({ run, workspace }) => {
  const found = await durations(run, workspace, [
    '2 days',
    '1d',
    '10h',
    '2.5 hrs',
    '.5m',
    '1y',
    '100',
    '-3 days',
    '5 -m',
  ]);
  assert.deepEqual(found, [
    172_800_000,
    86_400_000,
    36_000_000,
    9_000_000,
    30_000,
    31_557_600_000,
    100,
    -259_200_000,
    null,
  ]);
});

validate('only index.js changed', async ({ run, workspace, variables }) => {
  const difference = await run('git', ['-C', workspace, 'diff', '--name-only', String(variables.base)]);
  assert.equal(difference.exitCode, 0, difference.stderr);
  assert.equal(difference.stdout.trim(), 'index.js');
});
