import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openFaultFront } from '../../test/faults/fault-front.ts';
import { DaemonProcess } from './daemon-process.ts';
import { Feeder } from './feeder.ts';
import { readBack } from './read-back.ts';
import { runsThroughKills } from './runs-through-kills.ts';
import { soak } from './soak.ts';
import { soakChart, soakJson, soakReport } from './soak-report.ts';

/**
 * The daemon under load for a long time. Its service, and the feeder that queues the runs, are separate
 * processes.
 *
 *   soak [--minutes 30] [--kill K]   always has work; writes soak.json and soak.svg to --out FOLDER,
 *                                    the working folder by default
 *   soak --runs 200 [--kill 5]       a fixed number of runs through this many SIGKILLs; prints one line of
 *                                    JSON and exits with 1 if a result is lost or accepted twice
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    kill: { type: 'string', default: '0' },
    runs: { type: 'string' },
    concurrency: { type: 'string' },
    out: { type: 'string', default: '.' },
    // Every bench accepts these; the results are files, or one line.
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const kills = Number(values.kill);
const minutes = values.quick ? 1 : Number(values.minutes);
const concurrency = values.concurrency === undefined ? undefined : Number(values.concurrency);
/** Milliseconds that a run of a no-op trial may take on a slow machine; only for hangs. */
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
  // The daemon's log has the error.
  if (isKept) console.error(`kept ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
}
