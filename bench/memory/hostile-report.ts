import { join } from 'node:path';
import { printTable } from '../table.ts';
import { variants } from './hostile-cases.ts';
import { type HostileMeasurement, hostileRun } from './hostile-run.ts';

interface ReportRequest {
  folder: string;
  heapMiB: number;
  isQuick: boolean;
  json: boolean;
}

/** Measures and prints. True if the process survived and every honest trial passed. */
export async function reportHostile({ folder, heapMiB, isQuick, json }: ReportRequest): Promise<boolean> {
  if (!(heapMiB > 0)) throw new Error('--heap takes a number of MiB');
  const runs: Record<string, HostileMeasurement> = {};
  for (const variant of variants) {
    runs[variant] = await hostileRun({ folder: join(folder, variant), variant, heapMiB, isQuick });
  }
  const all = Object.values(runs);
  const trials = all.flatMap((run) => run.trials);
  const honest = trials.filter(({ isHonest }) => isHonest);
  const passed = honest.filter(({ verdict }) => verdict === 'passed');
  const highest = (of: (run: HostileMeasurement) => number) => Math.max(...all.map(of));
  const result = {
    heapMiB,
    survived: all.every(({ survived }) => survived),
    residentMiB: highest(({ residentMiB }) => residentMiB),
    heapUsedMiB: highest(({ heapUsedMiB }) => heapUsedMiB),
    externalMiB: highest(({ externalMiB }) => externalMiB),
    honest: { passed: passed.length, all: honest.length },
    hostile: countsOf(trials.filter(({ isHonest }) => !isHonest).map(({ verdict }) => verdict)),
  };
  if (json) console.log(JSON.stringify({ ...result, runs }, null, 2));
  else {
    for (const run of all) {
      printTable(run.trials.map(({ id, verdict, why }) => ({ id, verdict, why })));
      if (!run.survived) console.log(run.ended);
    }
    console.log(`heap limit ${heapMiB} MiB: at most ${result.residentMiB} MiB resident, of it`);
    console.log(
      `${result.heapUsedMiB} MiB in the heap and ${result.externalMiB} MiB beside it, not at one time`,
    );
    console.log(
      `the process ${result.survived ? 'survived' : 'ended'}; ` +
        `honest trials passed: ${passed.length} of ${honest.length}`,
    );
    console.log(`hostile trials: ${JSON.stringify(result.hostile)}`);
  }
  return result.survived && passed.length === honest.length;
}

function countsOf(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
