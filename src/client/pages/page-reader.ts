import { z } from 'zod';
import { DocumentTooHeavy, longestDocument, parseForeignJson } from '../../base/parse-json.ts';
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
  const most = serviceAnswers.count.records;
  if (listed.length > most) note('a page with too many runs; some are left out');
  const runs = listed.slice(0, most).flatMap((given) => {
    const brief = readRun(given, 'brief');
    const isChosen = parts !== 'brief' && brief.record && (!of || of(brief.record as ListedRun));
    const { record, isLong, issues } = isChosen ? readRun(given, parts) : brief;
    const run =
      isObject(given) && Object.hasOwn(given, 'id') ? `run ${quote(named(given.id), 100)}` : 'a run';
    if (issues.length > 0) {
      const where = printIssues(issues, quote, { areAll: false });
      note(`${record ? `parts of ${run}` : run} in a form that cannot be read; left out:${where}`);
    }
    if (record && isLong) note(`trials of ${run}, too many to be read; left out`);
    return record ? (record as ListedRun<RunParts>) : [];
  });
  const unread = listed.length - runs.length;
  return { _tag: 'read', page: { page, pageSize, total, runs }, unread, passedOver: [...passedOver] };
}

/** `String` throws for an object whose `toString` is no function. */
function named(id: unknown): string {
  return typeof id === 'object' ? JSON.stringify(id) : String(id);
}

function readRun(listed: unknown, parts: RunParts): ReadRecord & { isLong: boolean } {
  const { trials, ...run } = isObject(listed) ? listed : {};
  const list = Array.isArray(trials) ? trials : [];
  const isLong = list.length > serviceAnswers.count.records;
  const { record, issues } = readers[parts].run(list.length > 0 ? run : listed);
  if (!record || isLong) return { record, issues, isLong };
  const kept: unknown[] = [];
  const all = [...issues];
  for (const [index, trial] of list.entries()) {
    const one = readers[parts].trial(trial);
    if (one.record) kept.push(one.record);
    if (all.length <= serviceAnswers.count.issues)
      all.push(...one.issues.map((issue) => ({ ...issue, path: ['trials', index, ...issue.path] })));
  }
  return { record: list.length > 0 ? { ...record, trials: kept } : record, issues: all, isLong };
}

interface ReadRecord {
  /** Undefined if nothing can be done with the record. */
  record?: Record<string, unknown> | undefined;
  /** About the parts that are left out. */
  issues: readonly z.core.$ZodIssue[];
}

/**
 * Reads the fields of a record that a schema names. Of those that cannot be read, it needs the required ones.
 */
function readerOf(schema: z.ZodObject): (value: unknown) => ReadRecord {
  let leftOut: z.core.$ZodIssue[] = [];
  const lenientField = ([name, field]: [string, z.ZodType]): [string, z.ZodType] => {
    const read: z.ZodType = receiving(field, z.object);
    if (!(field instanceof z.ZodOptional)) return [name, read];
    const withoutIt = read.catch(({ error }: z.core.$ZodCatchCtx) => {
      leftOut.push(...error.issues.map((issue) => ({ ...issue, path: [name, ...issue.path] })));
      return undefined;
    });
    return [name, withoutIt];
  };
  // Most commands read only some kinds of records, or none.
  let lenient: z.ZodType<Record<string, unknown>> | undefined;
  return (value) => {
    lenient ??= z.object(Object.fromEntries(Object.entries(schema.shape).map(lenientField)));
    leftOut = [];
    const { data, error } = lenient.safeParse(value);
    return { record: data, issues: [...leftOut, ...(error?.issues ?? [])] };
  };
}

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

const briefTrial = readerOf(BriefTrial);
const readers = {
  brief: { run: readerOf(schemas.brief), trial: briefTrial },
  setup: { run: readerOf(schemas.setup), trial: briefTrial },
  results: { run: readerOf(schemas.results), trial: readerOf(MeasuredTrial) },
};

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
