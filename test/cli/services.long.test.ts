import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { offsite, trustOfThisMachine } from './offsite.ts';
import { openPlace } from './place.ts';

const example = fileURLToPath(new URL('../../examples/database', import.meta.url));
const tasks = ['--tasks', `${example}/tasks`, '--format', 'harbor', '--config', `${example}/offsite.yaml`];

// The images are built from Debian packages, and the harness is installed from npm: minutes, the first time.
test('a task of Harbor with a database is checked, and solved by a real harness with a scripted model', {
  timeout: 1_800_000,
}, async () => {
  using place = openPlace();
  const checked = await offsite(place, ['check', ...tasks]);
  expect(checked.stdout).toMatch(/late-orders +untouched +failed/);
  expect(checked.stdout).toMatch(/late-orders +solved +passed/);
  expect(checked.exitCode, checked.stderr).toBe(0);

  const { exitCode, stdout, stderr } = await offsite(
    place,
    ['run', ...tasks, '--variant', 'codex:rehearsal'],
    { env: await trustOfThisMachine() },
  );
  expect(stdout, stderr).toMatch(/late-orders · rehearsal\/codex +1 +0 +0/);
  expect(stdout).toContain('offsite/base was used in place of the image debian:12');
  expect(exitCode).toBe(0);

  const trial = 'late-orders/rehearsal/codex#0';
  const shown = await offsite(place, ['show', trial]);
  expect(shown.stdout).toMatch(/service +db: built from \S+db\/Dockerfile, healthy after [\d.]+ m?s/);
  const log = await offsite(place, ['show', trial, '--transcript']);
  expect(log.stdout).toContain('database system is ready to accept connections');
  const kept = await offsite(place, ['trial', 'artifacts', trial]);
  expect(kept.stdout).toContain('.offsite/services/db.log');
});
