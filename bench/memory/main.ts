import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { printTable } from '../table.ts';
import { reportHostile } from './hostile-report.ts';
import { type Measured, measuredRun } from './measured-run.ts';

/**
 * Offsite's own memory: resident MiB of `offsite run`, including the embedded service.
 *
 *   memory             while a trial prints a gigabyte, and over many no-op trials
 *   memory --heap 256  with a heap of this many MiB, under attack from hostile agents and a hostile model;
 *                      exits with 1 if the process ended or an honest trial next to them did not pass
 *
 * Uses the built command if there is one, as the package ships it; the sources take about 15 MiB more, for
 * compiling the types.
 */
const { values } = parseArgs({
  options: {
    heap: { type: 'string' },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'offsite-bench-'));
try {
  const isWell =
    values.heap === undefined
      ? await reportOrdinary()
      : await reportHostile({
          folder,
          heapMiB: Number(values.heap),
          isQuick: values.quick,
          json: values.json,
        });
  if (!isWell) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** True if the highest value was below the limit. */
async function reportOrdinary(): Promise<boolean> {
  const limitMiB = 150;
  const printedMiB = values.quick ? 128 : 1024;
  // A batch has at most a hundred cases of ten trials.
  const cases = values.quick ? 5 : 50;
  const trialsPerCase = values.quick ? 4 : 10;
  const printed = await measuredRun({
    folder: join(folder, 'printed'),
    run: `head -c ${printedMiB}M /dev/zero | tr '\\0' x`,
    cases: 1,
    trialsPerCase: 1,
    concurrency: 1,
  });
  const noop = await measuredRun({
    folder: join(folder, 'noop'),
    run: 'true',
    cases,
    trialsPerCase,
    concurrency: 8,
  });
  const highestMiB = Math.max(printed.highest, noop.highest);
  const result = {
    limitMiB,
    highestMiB,
    withinLimit: highestMiB < limitMiB,
    command: printed.command,
    printed: { printedMiB, ...shown(printed) },
    noop: { trials: cases * trialsPerCase, ...shown(noop) },
  };
  if (values.json) console.log(JSON.stringify(result, null, 2));
  else printTable((['printed', 'noop'] as const).map((each) => ({ '': each, ...result[each] })));
  return result.withinLimit;
}

/** The curve as ten values, so that growth is visible and the document stays short. */
function shown({ highest, curve }: Measured) {
  const step = Math.max(1, Math.floor(curve.length / 10));
  return { highest, curve: curve.filter((_, index) => index % step === 0) };
}
