import type { z } from 'zod';
import type { Quote } from '../api-key.ts';
import { printIssues } from '../request.ts';
import type { ListedRun } from './run-parts.ts';

/** A trial that lacks one of these cannot be used, and neither can a run without an id. */
const needed: ReadonlySet<PropertyKey | undefined> = new Set(['id', 'ordinal', 'status']);

export interface RunRead {
  /** Undefined if nothing can be done with the record. */
  run: ListedRun | undefined;
  /** What was left out, for people. */
  passedOver: string | undefined;
}

/**
 * Reads one record of a page by itself, because a record that cannot be read must not hide the others. A part
 * that cannot be read is left out if the record can be used without it; else the trial is left out, or the
 * run.
 */
export function readRun(record: unknown, schema: z.ZodType, quote: Quote): RunRead {
  const whole = schema.safeParse(record);
  if (whole.success) return { run: whole.data as ListedRun, passedOver: undefined };
  const { issues } = whole.error;
  const kept = schema.safeParse(withoutParts(record, issues));
  const name = isObject(record) ? `run ${quote(String(record.id), 100)}` : 'a run';
  const what = kept.success ? `parts of ${name}` : name;
  const where = printIssues(issues, quote);
  return {
    run: kept.success ? (kept.data as ListedRun) : undefined,
    passedOver: `the service lists ${what} in a form that cannot be read; left out:${where}`,
  };
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
