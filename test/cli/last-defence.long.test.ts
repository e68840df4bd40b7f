import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { until } from '../engine/engine-fixture.ts';
import { runsOf } from './ask.ts';
import { containersOnce } from './containers.ts';
import { type Running, start } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 180_000;
const preload = fileURLToPath(new URL('./escape.ts', import.meta.url));

const cases = [
  { id: 'quick', verify: 'true', variables: { act: 'true' } },
  { id: 'slow', verify: 'true', variables: { act: 'sleep 600' } },
];

function startWithDefect(place: Place, args: string[]): Running {
  return start(place, args, {
    env: { NODE_OPTIONS: `--import ${preload}`, ESCAPE: join(place.folder, 'escape') },
  });
}

/** The numbers of the attempts that the ledger has as not ended. */
function openAttempts(place: Place) {
  const database = new DatabaseSync(join(place.dataFolder, 'ledger.db'), { readOnly: true });
  const attempts = database.prepare('SELECT number FROM attempts WHERE ended_at IS NULL').all();
  database.close();
  return attempts.map(({ number }) => number);
}

/** Lets an error escape once this attempt of the slow trial runs, and waits for the end. */
async function crash(place: Place, running: Running, attempt: number) {
  await running.printed(/✓ quick|batch \S+: 1 of 2 trials/);
  await until(() => openAttempts(place).join() === String(attempt));
  writeFileSync(join(place.folder, 'escape'), '');
  return running.ended;
}

describe.concurrent('an error that escapes', { timeout }, () => {
  test('puts back what runs, says what to report, and a trial that met it twice is void', async () => {
    using place = openPlace();
    const running = startWithDefect(place, ['run', place.suite({ cases }), '-c', '2']);
    const [, batch = ''] = await running.printed(/batch (\S+): 2 trials/);
    const first = await crash(place, running, 1);
    expect(first.exitCode).toBe(3);
    const [, file = ''] = /Please report (\S+)/.exec(first.stderr) ?? [];
    expect(readFileSync(file, 'utf8')).toMatch(/a defect that was made for a test\n\s+at Timeout.look/);
    expect(first.stderr).not.toContain('    at ');
    expect(first.stderr).toContain('`offsite resume` continues');
    await containersOnce([`offsite.batch=${batch}`], (containers) => containers.length === 0);

    const second = await crash(place, startWithDefect(place, ['resume', batch]), 2);
    expect(second.exitCode).toBe(3);

    const third = await startWithDefect(place, ['resume', batch, '--json']).ended;
    expect(third.exitCode).toBe(3);
    expect(JSON.parse(third.stdout)).toMatchObject([{ passed: 1, void: 1, unreported: 0 }]);
    const runs = await runsOf(place, 'quick', 'slow');
    expect(runs.map(({ trials }) => trials?.map(({ status }) => status))).toEqual([['reported'], ['voided']]);
    expect(third.stderr).toMatch(/Offsite itself failed 2 times while it ran this trial.*crashes/);
  });

  test('ends `offsite serve` with its message, and not with a stack', async () => {
    using place = openPlace();
    const serving = start(place, ['serve'], {
      env: { NODE_OPTIONS: `--import ${preload}`, ESCAPE: join(place.folder, 'escape') },
    });
    await serving.printed(/Eval Service at/);
    writeFileSync(join(place.folder, 'escape'), '');
    const { exitCode, stderr } = await serving.ended;
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/Please report \S+crashes/);
  });
});
