import { cpus, totalmem } from 'node:os';
import { plural } from '../../src/text/quantities.ts';
import { drawChart, type Panel } from './chart.ts';
import type { ReadBack } from './read-back.ts';
import type { Sample, Soaked } from './soak.ts';

/** The result of a soak, as in its JSON document. */
export function soakReport(minutes: number, { samples, killedAt, concurrency }: Soaked, back: ReadBack) {
  const memory = values(samples, 'memoryMiB');
  const third = Math.floor(memory.length / 3);
  return {
    minutes,
    machine: { cpus: cpus().length, memoryMiB: Math.round(totalmem() / 1024 ** 2), node: process.version },
    concurrency,
    trials: samples.at(-1)?.reported ?? 0,
    kills: killedAt.length,
    killedAt,
    ...back,
    // The first minutes fill caches; growth would show between the second and the last third.
    memoryMiB: {
      highest: Math.max(...memory),
      middleThird: mean(memory.slice(third, 2 * third)),
      lastThird: mean(memory.slice(2 * third)),
    },
    openFiles: summary(values(samples, 'openFiles')),
    outbox: {
      results: summary(values(samples, 'waiting')),
      oldestSeconds: summary(values(samples, 'oldest')),
    },
    samples,
  };
}

export type SoakReport = ReturnType<typeof soakReport>;

/** The document with one line per sample. */
export function soakJson({ samples, ...summary }: SoakReport): string {
  const head = JSON.stringify(summary, null, 2).slice(0, -2);
  const lines = samples.map((sample) => `    ${JSON.stringify(sample)}`);
  return `${head},\n  "samples": [\n${lines.join(',\n')}\n  ]\n}\n`;
}

/** Four panels over the same period. */
export function soakChart({
  minutes,
  concurrency,
  memoryMiB,
  openFiles,
  outbox,
  samples,
  killedAt,
  trials,
}: SoakReport) {
  const kills = killedAt.length === 0 ? '' : `, ${plural(killedAt.length, 'kill')}`;
  const panel = (name: keyof Sample, title: string, note: string, color: Panel['color']): Panel => ({
    title,
    note,
    color,
    points: samples.map((sample) => ({ at: sample.at, value: sample[name] })),
  });
  const { middleThird, lastThird, highest } = memoryMiB;
  return drawChart({
    title: `offsite daemon: ${minutes} minutes, ${concurrency} trials at a time${kills}`,
    marks: killedAt,
    panels: [
      panel(
        'memoryMiB',
        'resident memory, MiB',
        `highest ${highest}, mean of the middle third ${middleThird}, of the last ${lastThird}`,
        '#2463c8',
      ),
      panel('openFiles', 'open files', `${openFiles.lowest} to ${openFiles.highest}`, '#14826e'),
      panel(
        'oldest',
        'oldest result in the outbox, seconds',
        `${outbox.oldestSeconds.highest} at most, ${plural(outbox.results.highest, 'result')} at a time`,
        '#c86e14',
      ),
      panel(
        'reported',
        'trials reported',
        `${trials}, ${Math.round((trials * 60) / (samples.at(-1)?.at ?? 1))} a minute`,
        '#8246b4',
      ),
    ],
  });
}

function values(samples: readonly Sample[], name: keyof Sample): number[] {
  return samples.map((sample) => sample[name]).filter((value) => value !== undefined);
}

function summary(numbers: readonly number[]) {
  return { lowest: Math.min(...numbers), mean: mean(numbers), highest: Math.max(...numbers) };
}

/** Rounded to a tenth. */
function mean(numbers: readonly number[]): number {
  return Math.round((numbers.reduce((sum, number) => sum + number, 0) / numbers.length) * 10) / 10;
}
