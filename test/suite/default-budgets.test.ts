import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { type Config, defaultBudgetsText } from '../../src/suite/config-file.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { missingPrices } from '../../src/suite/require-prices.ts';
import { eachFolder, folder } from '../each-folder.ts';

eachFolder();

const api = { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:9/v1' };
const free = { ...api, model: 'free' };
const priced = { ...api, model: 'priced', prices: { date: '2026-01-15', input: 3, output: 15 } };

function configOf(file: object): Config {
  const named = join(folder, 'offsite.yaml');
  writeFileSync(named, stringify(file));
  return loadConfig({ named, env: {} });
}

const budgetsOf = (file: object) => configOf(file).budgets;

test('nothing is limited where no model has prices', () => {
  const budgets = budgetsOf({ models: { free } });
  expect(budgets).toEqual({ trial: {}, batch: {} });
  expect(defaultBudgetsText(budgets)).toBeUndefined();
});

test('a trial and a batch of a model with prices are limited, and so are judges with other limits', () => {
  const budgets = budgetsOf({
    models: { free, priced },
    budgets: { trial: { requests: 9 }, judges: { tokens: 1 } },
  });
  expect(budgets).toEqual({
    trial: { requests: 9, usd: 10, usdIsDefault: true },
    judges: { tokens: 1, usd: 10, usdIsDefault: true },
    batch: { usd: 200, usdIsDefault: true },
  });
  expect(defaultBudgetsText(budgets)).toMatch(/^limited by default: 10 USD .* and 200 USD .*`unlimited`$/);
});

test('what the file says holds, also that there is no limit', () => {
  const budgets = budgetsOf({
    models: { priced },
    budgets: { trial: { usd: 3 }, batch: { usd: 'unlimited', time: '1h' } },
  });
  expect(budgets).toEqual({ trial: { usd: 3 }, batch: { time: 3_600_000 } });
  expect(defaultBudgetsText(budgets)).toBeUndefined();
  expect(() => budgetsOf({ budgets: { trial: { usd: 'none' } } })).toThrow('budgets.trial.usd');
});

test('a limit in USD needs the prices of the models that are used and cost something', () => {
  const models = {
    free: { ...api, aliases: ['alias'] },
    priced,
    script: { scripted: 's' },
    tape: { replay: 't' },
  };
  const missing = (budgets: object) =>
    missingPrices(['alias', 'priced', 'script', 'tape'], configOf({ models, budgets }));
  const issue = {
    path: 'budgets.batch.usd',
    message: expect.stringContaining('the model alias has no prices'),
  };
  expect(missing({ batch: { usd: 5 } })).toEqual([expect.objectContaining(issue)]);
  expect(missing({ judges: { usd: 5 } })).toMatchObject([{ path: 'budgets.judges.usd' }]);
  for (const other of [{}, { trial: { usd: 'unlimited', tokens: 5 } }]) expect(missing(other)).toEqual([]);
});
