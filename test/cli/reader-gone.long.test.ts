import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { main, offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test('a run whose reader leaves (`| head`) still runs to its end, and reports everything', async () => {
  await using place = openPlace();
  const suite = place.suite({ trials: 2, run: 'true', cases: [{ id: 'a', verify: 'true' }] });
  const command = `'${process.execPath}' '${main}' run '${suite}' --data-folder '${place.dataFolder}' 2>&1 | head -n 1; exit \${PIPESTATUS[0]}`;
  await promisify(execFile)('bash', ['-c', command], { cwd: place.folder });
  expect((await offsite(place, ['data', 'outbox'])).stdout).toContain('nothing waits');
  const { stdout } = await offsite(place, ['service', 'runs', 'a', '--json']);
  expect(JSON.parse(stdout).runs[0]).toMatchObject({ status: 'completed', distribution: { passed: 2 } });
});
