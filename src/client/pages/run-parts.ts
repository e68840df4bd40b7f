import { z } from 'zod';
import { receiving } from '../../contract/receiving.ts';
import { Costs, RunRecord, type Setup, Trial } from '../../contract/record.ts';
import { Judgment, Validation } from '../../contract/validation.ts';

const BriefTrial = Trial.pick({ id: true, ordinal: true, status: true, sandboxId: true });
const BriefRun = RunRecord.omit({ costs: true, setup: true, trials: true }).extend({
  trials: z.array(BriefTrial).optional(),
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
export type ServiceTrial = z.output<typeof MeasuredTrial>;

/** The parts of a run or a trial that are kept, and how they are checked. */
export interface RecordReading {
  kept: z.ZodObject;
  schema: z.ZodType;
}

function readingOf(kept: z.ZodObject): RecordReading {
  return { kept, schema: receiving<z.ZodType>(kept) };
}

const briefTrial = readingOf(BriefTrial);
export const runReadings: Record<RunParts, { run: RecordReading; trial: RecordReading }> = {
  brief: { run: readingOf(schemas.brief), trial: briefTrial },
  setup: { run: readingOf(schemas.setup), trial: briefTrial },
  results: { run: readingOf(schemas.results), trial: readingOf(MeasuredTrial) },
};

/** The parts of a value that a schema names. */
export function partsOf(value: unknown, schema: z.core.$ZodType): unknown {
  if (schema instanceof z.ZodOptional) return partsOf(value, schema.unwrap());
  if (schema instanceof z.ZodArray && Array.isArray(value))
    return value.map((entry) => partsOf(entry, schema.element));
  if (!(schema instanceof z.ZodObject) || !isObject(value)) return value;
  const fields = Object.entries<z.core.$ZodType>(schema.shape);
  return Object.fromEntries(
    fields.flatMap(([name, field]) =>
      Object.hasOwn(value, name) ? [[name, partsOf(value[name], field)]] : [],
    ),
  );
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
