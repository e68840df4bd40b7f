import { parseArgs } from 'node:util';
import { printAnswers } from './model/print-answers.ts';

/**
 * A model of a large fleet: how long a batch takes, and where it saturates. With `--real`, a real fleet of
 * four workers on this machine: its overhead over one Offsite process, what the model says about it, and its
 * memory. With `--faults` too, what becomes of its trials when workers and server are killed.
 *
 *   fleet [--only QUESTION] [--pictures FOLDER] [--json] [--quick]
 *   fleet --real [--trials 200] [--rounds 3] [--json] [--quick]
 *   fleet --real --faults [--trials 200] [--kill 12] [--seed 1] [--json] [--quick]
 *
 * With `--real`, exits with 1 if the numbers are not what they must be.
 */
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    pictures: { type: 'string' },
    real: { type: 'boolean', default: false },
    faults: { type: 'boolean', default: false },
    trials: { type: 'string' },
    rounds: { type: 'string' },
    kill: { type: 'string' },
    seed: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const { only, pictures, json, quick } = values;
const number = (given: string | undefined, usual: number) => (given === undefined ? usual : Number(given));

if (values.real) {
  const trials = number(values.trials, quick ? 40 : 200);
  const { measureFaults, measureReal } = await import('./real/measure.ts');
  const isGood = values.faults
    ? await measureFaults({
        trials,
        json,
        faults: number(values.kill, quick ? 4 : 12),
        seed: Number(values.seed),
      })
    : await measureReal({ trials, json, rounds: number(values.rounds, quick ? 1 : 3) });
  if (!isGood) process.exitCode = 1;
} else printAnswers({ trials: quick ? 100_000 : 1_000_000, only, pictures, json });
