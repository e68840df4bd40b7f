import { parseArgs } from 'node:util';
import { printAnswers } from './model/print-answers.ts';

/**
 * A model of a large fleet: how long a batch takes, and where it saturates.
 *
 *   fleet [--pictures FOLDER] [--json] [--quick]
 */
const { values } = parseArgs({
  options: {
    pictures: { type: 'string' },
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const { pictures, json } = values;
printAnswers({ trials: values.quick ? 100_000 : 1_000_000, pictures, json });
