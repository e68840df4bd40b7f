import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { table } from '../../../src/text/fit.ts';
import { plainText } from '../../../src/text/output.ts';
import { answers, type Row } from './questions.ts';

/**
 * Prints what the model of the fleet says, and draws it.
 *
 * @param options.trials of a batch
 * @param options.only the name of the one question that is asked; undefined for all
 * @param options.pictures a folder for SVG files; undefined for none
 * @param options.json whether to print one line of JSON for each question
 */
export function printAnswers({
  trials,
  only,
  pictures,
  json,
}: {
  trials: number;
  only: string | undefined;
  pictures: string | undefined;
  json: boolean;
}): void {
  for (const { name, question, rows, svg } of answers(trials, only)) {
    if (json) console.log(JSON.stringify({ name, rows: rows.map(withoutSamples) }));
    else console.log(`\n${question}\n${plainText(table(columns, rows.map(cellsOf)))}`);
    if (pictures === undefined) continue;
    mkdirSync(pictures, { recursive: true });
    writeFileSync(join(pictures, `${name}.svg`), svg);
  }
}

function withoutSamples({ differs, result: { samples: _, ...result } }: Row) {
  return { differs, ...result };
}

const columns = [
  'scenario',
  ...['minutes', '/ ideal', 'most held', 'lost trials', 'changes/s', 'heartbeat load'].map((right) => ({
    right,
  })),
];

function cellsOf({ differs, result }: Row): string[] {
  const { makespan, ideal, peakRunning, lost, peakChangesPerSecond, peakHeartbeatLoad } = result;
  return [
    differs === '' ? 'usual' : differs,
    (makespan / 60).toFixed(0),
    (makespan / ideal).toFixed(2),
    String(peakRunning),
    String(lost.trials),
    peakChangesPerSecond.toFixed(0),
    peakHeartbeatLoad.toFixed(2),
  ];
}
