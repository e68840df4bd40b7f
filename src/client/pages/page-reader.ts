import { z } from 'zod';
import {
  DocumentTooHeavy,
  heaviestDocument,
  parseCheckedJson,
  parseForeignJson,
  weightOf,
} from '../../base/parse-json.ts';
import { serviceAnswers } from '../../bounds/service.ts';
import { receiving } from '../../contract/receiving.ts';
import { RunsResponse } from '../../contract/record.ts';
import type { Quote } from '../api-key.ts';
import type { BodyReader } from '../exchange.ts';
import { printIssues } from '../request.ts';
import { NotJson, PageCutter, type PieceKind } from './page-cutter.ts';
import {
  isObject,
  type ListedRun,
  partsOf,
  type RecordReading,
  type RunParts,
  runReadings,
} from './run-parts.ts';

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
  | { _tag: 'broken' };

const Head = receiving(RunsResponse.extend({ runs: z.array(z.unknown()) }));

/**
 * Reads a page of runs as it arrives: each trial, and each run, is parsed by itself, and only the parts that
 * the caller reads are kept. So the page may be larger than memory. One record that cannot be read must not
 * hide the others. A part of it is left out if the record can be used without that; else the trial, or the
 * run, is left out.
 */
export class PageReader implements BodyReader {
  readonly maximumBytes = serviceAnswers.bytes.page;
  readonly #reading: (typeof runReadings)[RunParts];
  readonly #of: ((run: ListedRun) => boolean) | undefined;
  readonly #quote: Quote;
  readonly #cutter = new PageCutter((kind, json) => this.#read(kind, json));
  /** How many bytes the runs to come may take. */
  #room = Math.min(serviceAnswers.bytes.kept, heaviestDocument());
  /** The trials of the run that arrives. */
  #trials: OpenTrials = noTrials();
  #head: unknown;
  readonly #counts = { run: 0, trial: 0 };
  readonly #runs: ListedRun<RunParts>[] = [];
  #unread = 0;
  readonly #passedOver = new Set<string>();
  #isBroken = false;

  constructor({ parts = 'brief', of }: PageParts<RunParts>, quote: Quote) {
    this.#reading = runReadings[parts];
    this.#of = of;
    this.#quote = quote;
  }

  write(chunk: Uint8Array): boolean {
    this.#try(() => this.#cutter.write(chunk));
    return !this.#isBroken;
  }

  /** Call this at the end of the body. */
  finish(): PageReading {
    this.#try(() => this.#cutter.finish());
    if (this.#isBroken) return { _tag: 'broken' };
    const head = Head.safeParse(this.#head);
    if (!head.success) return { _tag: 'unlike', issues: head.error.issues };
    const { page, pageSize, total } = head.data;
    const passedOver = [...this.#passedOver];
    return {
      _tag: 'read',
      page: { page, pageSize, total, runs: this.#runs },
      unread: this.#unread,
      passedOver,
    };
  }

  #try(step: () => void): void {
    if (this.#isBroken) return;
    try {
      step();
    } catch (error) {
      if (!(error instanceof NotJson || error instanceof DocumentTooHeavy)) throw error;
      this.#isBroken = true;
    }
  }

  #read(kind: PieceKind, json: Buffer | undefined): void {
    if (kind === 'page') {
      if (!json) throw new NotJson();
      this.#head = parse(json);
      return;
    }
    this.#counts[kind] += 1;
    const read = this.#counts[kind] > serviceAnswers.count.records ? undefined : json;
    if (kind === 'trial') this.#addTrial(read);
    else this.#addRun(read);
  }

  #addTrial(json: Buffer | undefined): void {
    const trials = this.#trials;
    const index = trials.count++;
    if (trials.isTooLarge) return;
    const { record, issues, isTooLarge } = readRecord(json, this.#reading.trial, ['id', 'ordinal', 'status']);
    if (record) {
      trials.kept.push(record);
      trials.weight += weightOf(JSON.stringify(record));
    }
    if (trials.issues.length <= serviceAnswers.count.issues)
      trials.issues.push(...issues.map((issue) => ({ ...issue, path: ['trials', index, ...issue.path] })));
    if (isTooLarge || trials.weight > this.#room) this.#trials = { ...noTrials(), isTooLarge: true };
  }

  #addRun(json: Buffer | undefined): void {
    const trials = this.#trials;
    this.#trials = noTrials();
    const { record, name, issues, isTooLarge } = readRecord(json, this.#reading.run, ['id']);
    const run = name === undefined ? 'a run' : `run ${this.#quote(name, 100)}`;
    const all = [...issues, ...trials.issues];
    if (all.length > 0) {
      const where = printIssues(all, this.#quote);
      this.#note(`${record ? `parts of ${run}` : run} in a form that cannot be read; left out:${where}`);
    }
    if (record && trials.isTooLarge) {
      delete record.trials;
      this.#note(`trials of ${run} that are too large to be read; left out`);
    } else if (record && trials.count > 0) record.trials = trials.kept;
    const kept = record && this.#chosenParts(record);
    const weight = kept ? weightOf(JSON.stringify(kept)) : 0;
    if (isTooLarge || weight > this.#room)
      this.#note('a run that is too large to be read, or a page with too many runs; left out');
    if (!kept || weight > this.#room) {
      this.#unread += 1;
      return;
    }
    this.#room -= weight;
    this.#runs.push(kept);
  }

  #chosenParts(record: Record<string, unknown>): ListedRun<RunParts> {
    const brief = partsOf(record, runReadings.brief.run.kept) as ListedRun;
    return !this.#of || this.#of(brief) ? (record as ListedRun<RunParts>) : brief;
  }

  #note(message: string): void {
    if (this.#passedOver.size < serviceAnswers.count.passedOver)
      this.#passedOver.add(`the service lists ${message}`);
  }
}

interface OpenTrials {
  count: number;
  kept: unknown[];
  issues: z.core.$ZodIssue[];
  weight: number;
  isTooLarge: boolean;
}

function noTrials(): OpenTrials {
  return { count: 0, kept: [], issues: [], weight: 0, isTooLarge: false };
}

interface ReadRecord {
  /** Undefined if nothing can be done with the record. */
  record?: Record<string, unknown> | undefined;
  /** Its id. */
  name?: string | undefined;
  /** What is wrong with the parts that are left out. */
  issues: readonly z.core.$ZodIssue[];
  isTooLarge: boolean;
}

/** @param needed the fields without which a record cannot be used */
function readRecord(
  json: Buffer | undefined,
  { kept, schema }: RecordReading,
  needed: readonly PropertyKey[],
): ReadRecord {
  if (!json) return { issues: [], isTooLarge: true };
  let parts: unknown;
  try {
    parts = parseCheckedJson(JSON.stringify(partsOf(parse(json), kept)));
  } catch (error) {
    if (error instanceof DocumentTooHeavy) return { issues: [], isTooLarge: true };
    throw error;
  }
  const name = isObject(parts) && 'id' in parts ? String(parts.id) : undefined;
  const read = schema.safeParse(parts);
  if (read.success)
    return { record: read.data as Record<string, unknown>, name, issues: [], isTooLarge: false };
  const { issues } = read.error;
  const wrong = issues.map(({ path }) => path[0]);
  if (isObject(parts) && !wrong.some((field) => field === undefined || needed.includes(field))) {
    for (const field of wrong) delete parts[String(field)];
    const again = schema.safeParse(parts);
    if (again.success)
      return { record: again.data as Record<string, unknown>, name, issues, isTooLarge: false };
  }
  return { name, issues, isTooLarge: false };
}

/** Throws {@link NotJson}, or `DocumentTooHeavy`. */
function parse(json: Buffer): unknown {
  try {
    return parseForeignJson(new TextDecoder('utf-8', { fatal: true }).decode(json));
  } catch (error) {
    throw error instanceof DocumentTooHeavy ? error : new NotJson();
  }
}
