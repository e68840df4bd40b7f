import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RunRecord } from '../../src/contract/record.ts';
import { type DaemonPlace, openDaemonPlace } from './daemon-place.ts';

let bench: DaemonPlace;
beforeEach(async () => {
  bench = await openDaemonPlace();
});
afterEach(() => bench[Symbol.asyncDispose]());

const validator = `import { validate } from 'offsite/validator';
import { readFileSync } from 'node:fs';
validate('greets', ({ workspace }) => {
  console.log('a secret of the grading');
  if (!readFileSync(workspace + '/out.txt', 'utf8').includes('world')) throw new Error('no world');
});`;

/**
 * A batch of two variants that the service cannot tell apart, run by `offsite run` with all that a record has
 * no place for.
 */
function batchOfOurs() {
  return bench.place.suite({
    cases: [
      {
        id: 'greet',
        variables: { who: 'world' },
        prepare: 'echo keep > kept.txt',
        verify: 'grep -qx "hello $who" out.txt',
        validator: { source: validator, manifest: ['greets'], capture: false },
        artifacts: ['out.txt'],
        protected: ['kept.txt'],
      },
    ],
    variants: [
      { name: 'lazy', model: 'none', harness: 'command', profile: 'lazy' },
      { name: 'greeter', model: 'none', harness: 'command', profile: 'greeter' },
    ],
    config: {
      profiles: {
        lazy: { run: 'true' },
        greeter: { run: 'echo "hello $who" > out.txt; echo touched >> kept.txt' },
      },
      daemon: { suites: ['small'], poll: { min: '200ms', max: '2s' } },
    },
  });
}

/** What came of a run's first trial, as far as it should not depend on who ran it. */
function outcomeOf(run: RunRecord | undefined) {
  const [trial] = run?.trials ?? [];
  return {
    passed: run?.distribution?.passed,
    validations: trial?.validations?.map(({ name, exitCode, message }) => ({ name, exitCode, message })),
    verified: trial?.verifySteps?.map(({ exitCode }) => exitCode),
    artifacts: trial?.artifacts?.map(({ path }) => path),
  };
}

test('a rerun of a cell of an own batch is run by the daemon as the batch was planned', async () => {
  const suite = batchOfOurs();
  const ran = await bench.command('run', suite);
  expect(ran.exitCode, ran.stderr).toBe(0);
  const [second, first] = await bench.runs('greet');
  const greeter = [first, second].find((run) => run?.variant?.id.endsWith('-2'));
  const cellKey = `greet:${greeter?.variant?.id}`;
  const { id } = (await bench.service.ask('evals.rerunCell', { id: greeter?.batchId, cellKey })) as {
    id: string;
  };

  const drained = await bench.drained();
  expect(drained.stderr).not.toContain('a run waits');
  const again = (await bench.runs('greet')).find((run) => run.id === id);
  expect(again?.trials?.[0]?.status).toBe('reported');
  expect(outcomeOf(again)).toEqual(outcomeOf(greeter));
  expect(outcomeOf(again)).toMatchObject({ verified: [0], artifacts: expect.arrayContaining(['out.txt']) });
});
