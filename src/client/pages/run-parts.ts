import { z } from 'zod';
import { receiving } from '../../contract/receiving.ts';
import { Costs, RunRecord, type Setup, Trial } from '../../contract/record.ts';
import { Judgment, Validation } from '../../contract/validation.ts';
import type { Kept } from './json-filter.ts';

const BriefRun = RunRecord.omit({ costs: true, setup: true, trials: true }).extend({
  trials: z.array(Trial.pick({ id: true, ordinal: true, status: true, sandboxId: true })).optional(),
});

const [component] = [Costs.shape.components.unwrap().element];
const MeasuredCosts = Costs.extend({ components: z.array(component.omit({ detail: true })).optional() });
const judged = { name: true, score: true, choice: true, threshold: true } as const;
const MeasuredTrial = Trial.omit({ trajectory: true }).extend({
  costs: MeasuredCosts.optional(),
  validations: z
    .array(
      Validation.pick({ id: true, index: true, name: true, kind: true, status: true, exitCode: true }).extend(
        { durationMs: Validation.shape.durationMs, judgment: Judgment.pick(judged).optional() },
      ),
    )
    .optional(),
});

/**
 * The parts of a run that a caller may read. No caller reads the texts of a trial: its trajectory, and what
 * its validations printed.
 *
 * - `brief`: all but its setup, its costs, and what its trials measured
 * - `setup`: the same with the setup. The code that runs the trials reads it, so it may be anything here: a
 *   malformed one is an error there, which names the run
 * - `results`: the same as `brief`, with its costs and what its trials measured
 */
const schemas = {
  brief: BriefRun,
  setup: BriefRun.extend({ setup: z.unknown().optional() }),
  results: BriefRun.extend({ costs: MeasuredCosts.optional(), trials: z.array(MeasuredTrial).optional() }),
};

export type RunParts = keyof typeof schemas;

interface Runs {
  brief: z.output<typeof BriefRun>;
  setup: z.output<typeof BriefRun> & { setup?: Setup | undefined };
  results: z.output<typeof schemas.results>;
}
/** A run as a page lists it, with these parts. */
export type ListedRun<Parts extends RunParts = 'brief'> = Runs[Parts];

/** A trial with what it measured. */
export type ListedTrial = z.output<typeof MeasuredTrial>;

/** How a run with certain parts is kept and checked. */
export interface RunReading {
  kept: Kept;
  schema: z.ZodType;
}

export const runReadings = Object.fromEntries(
  Object.entries(schemas).map(([parts, schema]) => [
    parts,
    { kept: keptFor(schema), schema: receiving<z.ZodType>(schema) },
  ]),
) as Record<RunParts, RunReading>;

/** What has to be kept of a document so that a schema can read it: the fields that the schema names. */
function keptFor(schema: z.core.$ZodType): Kept {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return keptFor(schema.unwrap());
  if (schema instanceof z.ZodArray) return { entries: keptFor(schema.element) };
  if (schema instanceof z.ZodUnknown) return 'whole';
  if (!(schema instanceof z.ZodObject)) return 'scalar';
  const fields = Object.entries<z.core.$ZodType>(schema.shape);
  return { fields: new Map(fields.map(([name, field]) => [name, keptFor(field)])) };
}
