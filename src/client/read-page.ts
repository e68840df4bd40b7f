import { z } from 'zod';
import { receiving } from '../contract/receiving.ts';
import { RunRecord, RunsResponse } from '../contract/record.ts';
import type { Quote } from './api-key.ts';
import { printIssues } from './request.ts';

const Page = receiving(RunsResponse.extend({ runs: z.array(z.unknown()) }));

/**
 * The code that runs a run's trials reads its setup. A malformed one is an error there, which names the run.
 */
const Run = receiving(RunRecord.extend({ setup: z.unknown().optional() }));

/** Without one of these, nothing can be done with a trial; without its id, nothing with a run. */
const needed: ReadonlySet<PropertyKey | undefined> = new Set(['id', 'ordinal', 'status']);

export type PageReading =
  | { success: true; value: unknown; passedOver: string[] }
  | { success: false; issues: readonly z.core.$ZodIssue[] };

/**
 * Reads a page of runs record by record, because a page holds the history of a case: what cannot be read in
 * one record must not hide the others. A part that cannot be read is left out of its record if the record can
 * be used without it; else the trial is left out, or the run. `passedOver` says what was, for people.
 */
export function readPage(value: unknown, quote: Quote): PageReading {
  const page = Page.safeParse(value);
  if (!page.success) return { success: false, issues: page.error.issues };
  const passedOver: string[] = [];
  const runs = (page.data.runs as unknown[]).flatMap((record) => {
    const whole = Run.safeParse(record);
    if (whole.success) return [whole.data];
    const { issues } = whole.error;
    const kept = Run.safeParse(withoutParts(record, issues));
    const name = isObject(record) ? `run ${quote(String(record.id), 100)}` : 'a run';
    const what = kept.success ? `parts of ${name}` : name;
    const where = printIssues(issues, quote);
    passedOver.push(`the service lists ${what} in a form that cannot be read; left out:${where}`);
    return kept.success ? [kept.data] : [];
  });
  return { success: true, value: { ...page.data, runs }, passedOver };
}

/** A record without the parts that the issues name. */
function withoutParts(record: unknown, issues: readonly z.core.$ZodIssue[]): unknown {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return record;
  const left: Record<PropertyKey, unknown> = { ...record };
  const trials = Array.isArray(left.trials) ? left.trials.map(copyOf) : undefined;
  for (const { path } of issues) {
    const [part, index, field] = path;
    if (part !== 'trials' || typeof index !== 'number' || !trials) {
      if (part !== undefined && part !== 'id') delete left[part];
      continue;
    }
    const trial = trials[index];
    if (field === undefined || needed.has(field) || !isObject(trial)) trials[index] = undefined;
    else delete trial[field];
  }
  if (trials && 'trials' in left) left.trials = trials.filter((trial) => trial !== undefined);
  return left;
}

function copyOf(value: unknown): unknown {
  return isObject(value) ? { ...value } : value;
}

function isObject(value: unknown): value is Record<PropertyKey, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
