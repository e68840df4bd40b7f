import { table } from '../../../src/text/fit.ts';
import { plainText } from '../../../src/text/output.ts';
import type { Compared } from './model-check.ts';
import type { Overhead } from './overhead.ts';
import type { WorkerMemory } from './worker-memory.ts';

export function printOverhead({ trials, rounds, overhead, trialsPerSecond, perTrial }: Overhead): void {
  print(
    `${trials} trials without work, 8 at a time: seconds`,
    ['round', 'the engine alone', 'one agent', 'four workers', 'overhead'],
    rounds.map(({ floor, agent, fleet }, index) => [
      String(index + 1),
      ...[floor, agent, fleet, fleet / agent].map((seconds) => seconds.toFixed(2)),
    ]),
  );
  console.log(`\noverhead ${overhead.toFixed(2)}, ${trialsPerSecond.toFixed(1)} trials a second`);
  print(
    'What a trial costs the Temporal server',
    ['', 'for each trial'],
    Object.entries(perTrial)
      .filter(([name, count]) => count >= 0.1 && name !== 'change seconds')
      .map(([name, count]) => [name, count.toFixed(2)]),
  );
}

export function printCompared(rows: readonly Compared[]): void {
  print(
    'The model and what it models: seconds',
    ['trials', 'workers', 'model', 'real', 'model / real'],
    rows.map(({ workers, trials, profile, model, real, ratio }) => [
      `${trials} ${profile}`,
      String(workers),
      ...[model, real].map((seconds) => seconds.toFixed(1)),
      ratio.toFixed(2),
    ]),
  );
}

export function printMemory(rows: readonly WorkerMemory[]): void {
  print(
    'Memory of a worker: MiB',
    ['trials in flight', 'idle', 'most'],
    rows.map(({ inFlight, idle, most }) => [inFlight, idle, most].map(String)),
  );
}

function print(title: string, columns: readonly string[], rows: string[][]): void {
  const titles = columns.map((name, index) => (index === 0 ? name : { right: name }));
  console.log(`\n${title}\n${plainText(table(titles, rows))}`);
}
