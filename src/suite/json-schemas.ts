import { z } from 'zod';
import { CassetteLine } from '../record/cassette-line.ts';
import { ExportedTrial } from '../record/exported-trial.ts';
import { TrialRecord } from '../record/trial-record.ts';
import { ConfigFile } from './config-file.ts';
import { ScriptFile } from './script-file.ts';
import { SuiteFile } from './suite-file.ts';

/**
 * The JSON Schemas of the files that people write, for their editors, and of the records that Offsite writes.
 * Keyed by file name under `schemas/`.
 */
export function jsonSchemas(): Record<string, unknown> {
  return {
    'suite.schema.json': z.toJSONSchema(SuiteFile, { io: 'input' }),
    'offsite.schema.json': z.toJSONSchema(ConfigFile, { io: 'input' }),
    'script.schema.json': z.toJSONSchema(ScriptFile, { io: 'input' }),
    'exported-trial.schema.json': z.toJSONSchema(ExportedTrial),
    'cassette.schema.json': z.toJSONSchema(CassetteLine),
    'trial-record.schema.json': z.toJSONSchema(TrialRecord),
  };
}
