import { jsonSchemas } from '../../src/suite/json-schemas.ts';
import { commandsPage } from './commands-page.ts';
import { exitCodesPage } from './exit-codes-page.ts';
import { configurationKeys, type HowCommon, suiteKeys } from './how-common.ts';
import { keysPage } from './keys-page.ts';
import { metricsPage } from './metrics-page.ts';
import type { JsonSchema } from './schema-text.ts';

/** The generated pages of the reference, by their paths in the repository. */
export async function referencePages(): Promise<Record<string, string>> {
  const schemas = jsonSchemas() as Record<string, JsonSchema>;
  const keys = (title: string, about: string, name: string, counted?: HowCommon) =>
    keysPage(title, about, schemas[name] as JsonSchema, counted);
  return {
    'docs/reference/commands.md': await commandsPage(),
    'docs/reference/suite.md': keys(
      'Keys of suite.yaml',
      'A suite says what to evaluate. [Suites](../suites.md) explains it with examples. ' +
        '`schemas/suite.schema.json` ' +
        'lets editors complete and check it.',
      'suite.schema.json',
      suiteKeys,
    ),
    'docs/reference/offsite.md': keys(
      'Keys of offsite.yaml',
      'The configuration says what this machine has. [Configuration](../configuration.md) explains it ' +
        'with examples. `schemas/offsite.schema.json` lets editors complete and check it. A ' +
        'duration is a number ' +
        'with `ms`, `s`, `m` or `h`. A size is a number of bytes, or a number with `k`, `m` or `g`.',
      'offsite.schema.json',
      configurationKeys,
    ),
    'docs/reference/script.md': keys(
      'Keys of a scripted model',
      'The file that a scripted model answers from. [Scripted ' +
        'models](../models.md#scripted-models) explains it with ' +
        'examples. `schemas/script.schema.json` lets editors complete and check it.',
      'script.schema.json',
    ),
    'docs/reference/exit-codes.md': exitCodesPage(),
    'docs/reference/metrics.md': metricsPage(),
  };
}
