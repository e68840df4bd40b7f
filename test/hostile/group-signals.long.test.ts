import { describe, expect, test } from 'vitest';
import { shell, startedContainer } from '../engine/engine-fixture.ts';
import { bench, sharedBench } from '../trial/shared-bench.ts';
import { timeouts, validator } from '../trial/trial-bench.ts';

/**
 * Processes that signal their own group, or all that they may. On some engines the group's first process is
 * outside the container, and its number inside is 0.
 */

sharedBench();

const prepare = 'echo wrong > result';
const right = 'grep -qx right result';
/**
 * A stopped command is ended by its deadline, so the test waits for it. But what does end needs time on a
 * busy machine: a validator with calls of the work, and the same again to tell whose fault its failure is.
 */
const stopped = { timeouts: { ...timeouts, harness: 20_000, verify: 20_000, validator: 20_000 } };

const signals = ['KILL', 'TERM', 'STOP'].flatMap((signal) =>
  ['0', '-1'].map((whom) => `kill -${signal} ${whom}`),
);

describe.concurrent.each(signals)('%s', (signal) => {
  const limits = signal.includes('STOP') ? stopped : { timeouts };
  test('of an agent ends its own command, and it is graded by what it left', async () => {
    const [undone, done] = await Promise.all([
      bench.trial(signal, { prepare, verify: right }, limits),
      bench.trial(`echo right > result; ${signal}`, { prepare, verify: right }, limits),
    ]);
    expect(undone).toMatchObject({ verdict: 'failed' });
    expect(done).toMatchObject({ verdict: 'passed' });
  });

  test('of work that verify runs is the failure of that step', async () => {
    const work = `printf '#!/bin/bash\\n${signal}\\n' > work; chmod +x work`;
    const verify = `./work\n${right}`;
    expect(await bench.trial(work, { prepare, verify }, limits)).toMatchObject({ verdict: 'failed' });
  });

  test.each(['offsite-run ./work', './work'])(
    'of work that a validator runs with %s fails, and does not excuse it',
    async (run) => {
      const work = `printf '#!/bin/bash\\n${signal}\\n' > work; chmod +x work`;
      const source = `#!/bin/bash\n${run}\n${right}`;
      const result = await bench.trial(work, { prepare, validator: validator(source) }, limits);
      expect(result, JSON.stringify(result.cause)).toMatchObject({ verdict: 'failed' });
    },
  );
});

test('a signal to its own group reaches no other command of the container, and no way out of it', async () => {
  await using container = await startedContainer(bench.engine);
  const other = shell(container, 'touch /tmp/begun; sleep 4; echo survived');
  await shell(container, 'until [ -e /tmp/begun ]; do sleep 0.05; done');
  for (const user of ['0', '1000'])
    for (const signal of ['INT', 'HUP', 'TERM', 'KILL'])
      expect(await shell(container, `echo said; kill -${signal} 0`, { user })).toMatchObject({
        ended: 'exited',
        exitCode: { INT: 130, HUP: 129, TERM: 143, KILL: 137 }[signal],
        stdout: { text: 'said\n' },
      });
  expect(await other).toMatchObject({ ended: 'exited', exitCode: 0, stdout: { text: 'survived\n' } });
});
