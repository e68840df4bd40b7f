import { parseArgs } from 'node:util';
import { printAnswers } from './model/print-answers.ts';

/**
 * A model of a large fleet: how long a batch takes, and where it saturates.
 *
 *   fleet --model [--pictures FOLDER] [--quick]
 */
const { values } = parseArgs({
  options: {
    model: { type: 'boolean', default: false },
    pictures: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
});
printAnswers({ trials: values.quick ? 100_000 : 1_000_000, pictures: values.pictures });
