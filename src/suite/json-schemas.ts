import { z } from 'zod';
import { CassetteLine } from '../record/cassette-line.ts';
import { ExportedTrial } from '../record/exported-trial.ts';
import { TrialRecord } from '../record/trial-record.ts';
import { ConfigFile } from './config-file.ts';
import { writtenAs } from './quantities.ts';
import { ScriptFile } from './script-file.ts';
import { StreamLine } from './stream-line.ts';
import { SuiteFile } from './suite-file.ts';

/**
 * The JSON Schemas of the files and streams that people write, for their editors, and of the records that
 * Offsite writes. Keyed by file name under `schemas/`.
 *
 * @param compact whether repeated parts are written once
 */
export function jsonSchemas({ compact = false } = {}): Record<string, unknown> {
  const options = {
    io: 'input',
    reused: compact ? 'ref' : 'inline',
    override: showDefault,
  } as const;
  return {
    'suite.schema.json': z.toJSONSchema(SuiteFile, options),
    'offsite.schema.json': z.toJSONSchema(ConfigFile, options),
    'script.schema.json': z.toJSONSchema(ScriptFile, options),
    'stream-line.schema.json': z.toJSONSchema(StreamLine, options),
    'exported-trial.schema.json': z.toJSONSchema(ExportedTrial),
    'cassette.schema.json': z.toJSONSchema(CassetteLine),
    'trial-record.schema.json': z.toJSONSchema(TrialRecord),
  };
}

/** Zod leaves out the defaults of durations and sizes, because the code has them as numbers. */
function showDefault({
  zodSchema: { _zod },
  jsonSchema,
}: {
  zodSchema: z.core.$ZodTypes;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}): void {
  const { def } = _zod;
  if (def.type !== 'default' || jsonSchema.default !== undefined) return;
  const written = writtenAs(def.innerType, def.defaultValue);
  if (written !== undefined) jsonSchema.default = written;
}
