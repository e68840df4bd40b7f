// Runs the suite beside this file, and prints which variant does better. Start it with Node 24: node run.ts

import { readFileSync } from 'node:fs';
import { readBatch, runSuite } from 'offsite';

const { id } = await runSuite(`${import.meta.dirname}/suite.yaml`, {
  trials: 2,
  onEvent(event) {
    if (event.kind === 'finished') console.log(`${event.case} · ${event.variant}: ${event.verdict}`);
  },
});

const { trials } = await readBatch(id);
for (const [variant, all] of Map.groupBy(trials, (trial) => trial.variant)) {
  const passed = all.filter((trial) => trial.verdict === 'passed');
  console.log(`${variant} passed ${passed.length} of ${all.length}`);
}

const failed = trials.find((trial) => trial.verdict === 'failed');
const words = failed?.artifacts().find(({ path }) => path === 'words.txt');
if (words) console.log(`${failed?.name} wrote: ${readFileSync(words.file, 'utf8').trim()}`);
