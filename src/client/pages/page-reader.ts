import { z } from 'zod';
import {
  DocumentTooHeavy,
  longestDocument,
  parseCheckedJson,
  parseForeignJson,
} from '../../base/parse-json.ts';
import { serviceAnswers } from '../../bounds/service.ts';
import { receiving } from '../../contract/receiving.ts';
import { Costs, RunRecord, RunsResponse, type Setup, Trial } from '../../contract/record.ts';
import { Judgment, Validation } from '../../contract/validation.ts';
import type { Quote } from '../options.ts';
import { printIssues } from '../request.ts';

/** A page of a case's runs, as far as it can be read. */
export interface RunsPage<Parts extends RunParts = 'brief'> {
  page: number;
  pageSize: number;
  total: number;
  runs: ListedRun<Parts>[];
}

/** Which parts of runs are read, and of which runs. By default the brief parts, and all runs. */
export interface PageParts<Parts extends RunParts = 'brief'> {
  parts?: Parts;
  /** Selects the runs. Only the brief parts of other runs are kept. */
  of?: (run: ListedRun) => boolean;
}

export type PageReading =
  | {
      _tag: 'read';
      page: RunsPage<RunParts>;
      /** How many runs of the page were passed over. */
      unread: number;
      /** Why they or parts of them were passed over, for people. */
      passedOver: readonly string[];
    }
  | { _tag: 'unlike'; issues: readonly z.core.$ZodIssue[] }
  /** It is not JSON. */
  | { _tag: 'broken' }
  /** It would take too much memory. */
  | { _tag: 'heavy' };

const Head = receiving(RunsResponse.extend({ runs: z.array(z.unknown()) }));

/** How many bytes a page may have. */
export function largestPage(): number {
  return Math.min(serviceAnswers.bytes.page, longestDocument());
}

/**
 * Reads a page of runs. One record that cannot be read must not hide the others. A part of it is left out if
 * the record can be used without that; else the trial, or the run, is left out.
 */
export function readPage(
  body: Buffer,
  { parts = 'brief', of }: PageParts<RunParts>,
  quote: Quote,
): PageReading {
  let json: unknown;
  try {
    json = parseForeignJson(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    return { _tag: error instanceof DocumentTooHeavy ? 'heavy' : 'broken' };
  }
  const head = Head.safeParse(json);
  if (!head.success) return { _tag: 'unlike', issues: head.error.issues };
  const { page, pageSize, total, runs: listed } = head.data;
  const passedOver = new Set<string>();
  const note = (message: string) => {
    if (passedOver.size < serviceAnswers.count.passedOver) passedOver.add(`the service lists ${message}`);
  };
  const read = listed
    .slice(0, serviceAnswers.count.records)
    .flatMap((run) => readRun(run, runReadings[parts], quote, note) ?? []);
  if (listed.length > serviceAnswers.count.records) note('a page with too many runs; some are left out');
  const runs = read.map((record) => {
    const brief = partsOf(record, runReadings.brief.run.kept) as ListedRun;
    return !of || of(brief) ? (record as ListedRun<RunParts>) : brief;
  });
  const unread = listed.length - runs.length;
  return { _tag: 'read', page: { page, pageSize, total, runs }, unread, passedOver: [...passedOver] };
}

function readRun(
  listed: unknown,
  reading: (typeof runReadings)[RunParts],
  quote: Quote,
  note: (message: string) => void,
): Record<string, unknown> | undefined {
  const given = isObject(listed) ? listed : {};
  const trials = Array.isArray(given.trials) ? given.trials : [];
  const isLong = trials.length > serviceAnswers.count.records;
  const { record, issues } = readRecord(
    trials.length > 0 ? { ...given, trials: undefined } : listed,
    reading.run,
    ['id'],
  );
  const kept: unknown[] = [];
  const all = [...issues];
  for (const [index, trial] of isLong ? [] : trials.entries()) {
    const one = readRecord(trial, reading.trial, ['id', 'ordinal', 'status']);
    if (one.record) kept.push(one.record);
    if (all.length <= serviceAnswers.count.issues)
      all.push(...one.issues.map((issue) => ({ ...issue, path: ['trials', index, ...issue.path] })));
  }
  // `String` throws for an object whose `toString` is no function.
  const id = typeof given.id === 'object' ? JSON.stringify(given.id) : String(given.id);
  const run = Object.hasOwn(given, 'id') ? `run ${quote(id, 100)}` : 'a run';
  if (all.length > 0) {
    const where = printIssues(all, quote);
    note(`${record ? `parts of ${run}` : run} in a form that cannot be read; left out:${where}`);
  }
  if (record && isLong) note(`trials of ${run}, too many to be read; left out`);
  else if (record && trials.length > 0) record.trials = kept;
  return record;
}

/**
 * Undefined if nothing can be done with the record. The issues are about the parts that are left out.
 *
 * @param needed the fields without which a record cannot be used
 */
function readRecord(
  listed: unknown,
  { kept, schema }: RecordReading,
  needed: readonly PropertyKey[],
): { record?: Record<string, unknown>; issues: readonly z.core.$ZodIssue[] } {
  let parts: unknown;
  try {
    // A schema may report a problem with each value.
    parts = parseCheckedJson(JSON.stringify(partsOf(listed, kept) ?? null));
  } catch (error) {
    if (error instanceof DocumentTooHeavy) return { issues: [tooLarge] };
    throw error;
  }
  const read = schema.safeParse(parts);
  if (read.success) return { record: read.data as Record<string, unknown>, issues: [] };
  const { issues } = read.error;
  const wrong = issues.map(({ path }) => path[0]);
  if (!isObject(parts) || wrong.some((field) => field === undefined || needed.includes(field)))
    return { issues };
  for (const field of wrong) delete parts[String(field)];
  const again = schema.safeParse(parts);
  return again.success ? { record: again.data as Record<string, unknown>, issues } : { issues };
}

const tooLarge: z.core.$ZodIssue = { code: 'custom', path: [], message: 'it is too large to be read' };

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
interface RecordReading {
  kept: z.ZodObject;
  schema: z.ZodType;
}

function readingOf(kept: z.ZodObject): RecordReading {
  return { kept, schema: receiving<z.ZodType>(kept) };
}

const briefTrial = readingOf(BriefTrial);
const runReadings: Record<RunParts, { run: RecordReading; trial: RecordReading }> = {
  brief: { run: readingOf(schemas.brief), trial: briefTrial },
  setup: { run: readingOf(schemas.setup), trial: briefTrial },
  results: { run: readingOf(schemas.results), trial: readingOf(MeasuredTrial) },
};

/** The parts of a value that a schema names. */
function partsOf(value: unknown, schema: z.core.$ZodType): unknown {
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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
