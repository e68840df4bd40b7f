import { describe, expect, test } from 'vitest';
import { freshVerify } from '../../src/suite/plan.ts';
import type { TrialStep } from '../../src/trial/spec.ts';
import { scriptTests } from '../trial/script-tests.ts';
import { bench, sharedBench } from '../trial/shared-bench.ts';
import { type TrialBench, validator } from '../trial/trial-bench.ts';

/**
 * An agent replaces the shell, and leaves a process that only a restart of its sandbox ends. No command can be
 * run there any more. If the sandbox started again with that shell, it would also end by itself.
 */

sharedBench();

const shells: [string, string][] = [
  ['ends at once', 'exit 0'],
  ['fails', 'exit 3'],
  ['ends soon', 'exec /usr/bin/sleep 0.3'],
];
const act = (body: string) =>
  [
    `printf '#!/bin/bash\\n${body}\\n' > /tmp/shell; chmod 755 /tmp/shell`,
    'setsid sleep 300 > /dev/null 2>&1 < /dev/null & cp --remove-destination /tmp/shell /bin/sh',
  ].join('\n');
const prepare = 'echo wrong > result';
const verify = 'grep -qx right result';
const same = { ...freshVerify, in: 'same' as const };
const reads = validator(
  `import { validate } from 'offsite/validator'; import { readFileSync } from 'node:fs';
validate('the result', ({ check }) => check('right', readFileSync('result', 'utf8') === 'right\\n'));`,
  { runsIn: 'same' },
);
const reward = 'grep -qx right result; echo $((1 - $?)) > /logs/verifier/reward.txt';

function step(name: string): TrialStep {
  const tests = scriptTests(reward, { thresholds: { byName: {}, required: true } });
  return { name, prompt: name, variables: {}, files: [], emptied: [], agent: {}, tests, artifacts: [] };
}
const list = [step('first'), step('second')];
const gradings: [string, Parameters<TrialBench['trial']>[1]][] = [
  ['a fresh sandbox', { prepare, verify }],
  ['its own sandbox', { prepare, verify, verifyPlace: same }],
  ['its own sandbox by a validator', { prepare, validator: reads }],
  ['its own sandbox by the tests of a task', { prepare, tests: step('only').tests }],
  [
    'steps',
    { prepare, prompt: 'first', steps: { list, strategy: 'mean', thresholds: { default: 1, byName: {} } } },
  ],
];

describe.concurrent.each(gradings)('an agent that is graded in %s has failed', (_, graded) => {
  test.each(shells)('if it leaves a shell that %s', async (_how, body) => {
    const result = await bench.trial(act(body), graded);
    expect(result.verdict, result.cause?.message).toBe('failed');
    expect(['agent', undefined], result.cause?.message).toContain(result.cause?.kind);
  });
});

/**
 * Runs a trial of two steps whose agent leaves a shell that does what it should, but for the kill of all
 * processes, and for `atStart`, with which a container would begin. Nothing comes of it.
 */
async function inTwoSteps(atStart: string, act: { before?: string; after?: string }) {
  const shell = `#!/bin/bash
case "$2" in
  *'kill -9 -1'*) exit 0 ;;
  *"trap '' CHLD"*) ${atStart} ;;
esac
exec /usr/bin/dash "$@"`;
  const run = [
    act.before ?? '',
    `cat > /var/tmp/shell << 'END'\n${shell}\nEND`,
    'chmod 755 /var/tmp/shell; setsid sleep 300 > /dev/null 2>&1 < /dev/null &',
    act.after ?? '',
    'cp --remove-destination /var/tmp/shell /bin/sh',
  ].join('\n');
  const tests = scriptTests('grep -q x y; echo 1 > /logs/verifier/reward.txt');
  const two = ['first', 'second'].map((name) => ({ ...step(name), tests }));
  const steps = { list: two, strategy: 'mean' as const, thresholds: { default: 1, byName: {} } };
  const result = await bench.trial(run, { prepare, prompt: 'first', steps });
  expect(result.steps?.map(({ verdict }) => verdict)).toEqual(['passed', 'passed']);
  expect(result).toMatchObject({ verdict: 'passed', cause: undefined });
}

test('a shell that an agent left does not prevent the next step from beginning', async () => {
  // It would survive the restart after the harness, and not the one after the tests of the first step.
  const atStart = 'echo >> /var/tmp/starts; [ "$(wc -l < /var/tmp/starts)" = 1 ] || exit 0';
  const after = "printf '#!/bin/bash\\nsetsid sleep 300 > /dev/null 2>&1 < /dev/null &\\n' > /usr/bin/grep";
  await inTwoSteps(atStart, { after });
});

test('a shell that an agent left does not end the sandbox during the next step', async () => {
  // It would begin the restarted container, and end in the middle of the second step.
  const before = 'if [ -e /var/tmp/shell ]; then sleep 40; exit; fi';
  await inTwoSteps('exec /usr/bin/sleep 8', { before });
});
