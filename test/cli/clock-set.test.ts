import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test("a batch's time is true although somebody sets the machine's clock between two trials", async () => {
  using place = openPlace();
  const shift = place.write(
    'shift.mjs',
    `const real = Date.now.bind(Date);
Date.now = () => real() - (performance.now() > 2_500 ? 7_200_000 : 0);`,
  );
  const act = 'sleep 2';
  const suite = place.suite({
    cases: ['a', 'b'].map((id) => ({ id, verify: 'true', variables: { act } })),
    config: { concurrency: 1 },
  });
  const ran = await offsite(place, ['run', suite, '--json'], { env: { NODE_OPTIONS: `--import ${shift}` } });
  expect(ran.exitCode, ran.stderr).toBe(0);
  const { elapsedMs, elapsedIsAbout } = JSON.parse(ran.stdout);
  expect(elapsedMs).toBeGreaterThan(4_000);
  expect(elapsedMs).toBeLessThan(100_000);
  expect(elapsedIsAbout).toBeUndefined();
  const { stdout } = await offsite(place, ['data', 'batches', '--json']);
  expect(JSON.parse(stdout)[0].elapsedMs).toBe(elapsedMs);

  // One of its trials ran before the machine was started again.
  const database = new DatabaseSync(join(place.dataFolder, 'ledger.db'));
  database.exec("UPDATE trials SET steady_clock = 'another' WHERE key = (SELECT min(key) FROM trials)");
  database.close();
  expect((await offsite(place, ['data', 'batches'])).stdout).toMatch(/ 100 % +about /);
});
