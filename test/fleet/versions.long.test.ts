import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { openFleetPlace } from './fleet-place.ts';

/** A copy of this Offsite that exchanges a newer format with its fleet. Returns its `main.ts`. */
function newerOffsite(folder: string): string {
  const checkout = fileURLToPath(new URL('../../', import.meta.url));
  const copy = join(folder, 'newer');
  for (const part of ['src', 'runners', 'package.json', 'tsconfig.json'])
    cpSync(join(checkout, part), join(copy, part), { recursive: true });
  symlinkSync(join(checkout, 'node_modules'), join(copy, 'node_modules'));
  const file = join(copy, 'src/fleet/format.ts');
  const before = readFileSync(file, 'utf8');
  const after = before.replace(/const ownFormat = (\d+);/, 'const ownFormat = 99;');
  if (after === before) throw new Error('format.ts has no number to change');
  writeFileSync(file, after);
  return join(copy, 'src/cli/main.ts');
}

test('a worker of an older Offsite refuses a newer batch and says so, and newer workers run it', async () => {
  await using fleet = await openFleetPlace();
  const program = newerOffsite(fleet.place.folder);
  const file = fleet.suite({ cases: [{ id: 'a', verify: 'cat done.txt' }], trials: 2 });
  const older = await fleet.worker('older', ['-c', '1']);
  const watching = fleet.begin(['fleet', 'run', file], {}, undefined, program);
  await older.printed(
    /it comes from a newer Offsite \(fleet format 99\.1; here it is [\d.]+\)","msg":"refused a batch/,
  );
  await watching.printed(/2 trials wait: no worker has the fleet format 99\.1 of their batch, only [\d.]+\n/);
  await fleet.worker('newer', ['-c', '1'], { program });
  const { exitCode, stdout, stderr } = await watching.ended;
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^all +2 +0 +0/m);
  // The older one goes on with what is its own.
  const own = fleet.suite({ cases: [{ id: 'b', verify: 'cat done.txt' }] });
  expect((await fleet.run(own)).exitCode).toBe(0);
});
