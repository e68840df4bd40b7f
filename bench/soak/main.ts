import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openFaultFront } from '../../test/faults/fault-front.ts';
import { DaemonProcess } from './daemon-process.ts';
import { Feeder } from './feeder.ts';
import { readBack } from './read-back.ts';
import { runsThroughKills } from './runs-through-kills.ts';
import { soak } from './soak.ts';
import { soakChart, soakJson, soakReport } from './soak-report.ts';

/**
 * The daemon under load for long, its service and whoever queues the runs in processes of their own.
 *
 *   soak [--minutes 30] [--kill K]   is fed without end; writes docs/soak.json and docs/soak.svg (or --out FOLDER)
 *   soak --runs 200 [--kill 5]       a fixed number of runs through so many SIGKILLs; one line of JSON, exit 1 for any lost or twice
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    kill: { type: 'string', default: '0' },
    runs: { type: 'string' },
    concurrency: { type: 'string' },
    out: { type: 'string', default: fileURLToPath(new URL('../../docs', import.meta.url)) },
    // As every bench takes them; the results are files, or one line.
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const kills = Number(values.kill);
const minutes = values.quick ? 1 : Number(values.minutes);
const concurrency = values.concurrency === undefined ? undefined : Number(values.concurrency);
/** Milliseconds that a run may take with a trial that does nothing, on a slow machine; only ends a hang. */
const runTimeoutMs = 30_000;

const folder = mkdtempSync(join(tmpdir(), 'offsite-soak-'));
let isKept = true;
try {
  await using front = await openFaultFront(join(folder, 'service'));
  const feeder = new Feeder(front);
  await using daemon = new DaemonProcess({ folder, service: front, concurrency });
  if (values.runs === undefined) {
    const soaked = await soak(daemon, feeder, front, { minutes, kills });
    const report = soakReport(minutes, soaked, await readBack(front, feeder.runs));
    mkdirSync(values.out, { recursive: true });
    writeFileSync(join(values.out, 'soak.json'), soakJson(report));
    writeFileSync(join(values.out, 'soak.svg'), soakChart(report));
    const { samples: _, ...summary } = report;
    console.log(JSON.stringify(summary, null, 2));
    isKept = false;
  } else {
    const runs = Number(values.runs);
    const killed = await runsThroughKills(daemon, feeder, front, {
      runs,
      kills,
      timeoutMs: runs * runTimeoutMs,
    });
    const { reported, lost, duplicates, voided } = await readBack(front, feeder.runs);
    console.log(JSON.stringify({ runs, reported, lost, duplicates, kills: killed, voided }));
    isKept = lost + duplicates > 0;
    if (isKept) process.exitCode = 1;
  }
} finally {
  // What went wrong is in the daemon's log.
  if (isKept) console.error(`kept ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
}
