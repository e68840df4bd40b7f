import { z } from 'zod';
import { serviceAnswers } from '../../bounds/service.ts';
import { receiving } from '../../contract/receiving.ts';
import { RunsResponse } from '../../contract/record.ts';
import { DroppedBuffers } from '../../heap.ts';
import { DocumentTooHeavy, parseCheckedJson, parseForeignJson } from '../../parse-json.ts';
import type { Quote } from '../api-key.ts';
import type { BodyReader } from '../exchange.ts';
import { JsonFilter, type Kept, type KeptJson, type Room } from './json-filter.ts';
import { NotJson } from './json-scanner.ts';
import { type RunRead, readRun } from './read-run.ts';
import { type ListedRun, type RunParts, type RunReading, runReadings } from './run-parts.ts';
import { Utf8Check } from './utf8-check.ts';

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
 * Reads a page of runs as it arrives. It keeps only the parts of each run that the caller reads, so the page
 * may have any size. A run that cannot be read, or for which there is not enough room, is passed over.
 */
export class PageReader implements BodyReader {
  readonly maximumBytes = serviceAnswers.bytes.page;
  readonly #reading: RunReading;
  readonly #of: ((run: ListedRun) => boolean) | undefined;
  readonly #quote: Quote;
  readonly #utf8 = new Utf8Check();
  readonly #filter: JsonFilter;
  /** The room that is left for the runs to come. */
  readonly #room: Room = wholeRoom();
  #runs: { id: string }[] = [];
  #unread = 0;
  readonly #passedOver = new Set<string>();
  #isBroken = false;
  readonly #dropped = new DroppedBuffers();

  constructor({ parts = 'brief', of }: PageParts<RunParts>, quote: Quote) {
    this.#reading = runReadings[parts];
    this.#of = of;
    this.#quote = quote;
    this.#filter = new JsonFilter(pageOf(this.#reading.kept), this.#room, {
      list: () => this.#begin(),
      entry: (kept) => this.#add(kept),
    });
  }

  write(chunk: Uint8Array): boolean {
    this.#try(() => {
      if (!this.#utf8.accepts(chunk)) throw new NotJson('the document is not UTF-8');
      this.#filter.write(chunk);
    });
    this.#dropped.add(chunk.length);
    return !this.#isBroken;
  }

  /** Call this at the end of the body. */
  finish(): PageReading {
    const kept = this.#try(() => this.#filter.finish());
    if (kept === undefined) return { _tag: 'broken' };
    const head = Head.safeParse(parseForeignJson(kept.json.toString()));
    if (!head.success) return { _tag: 'unlike', issues: head.error.issues };
    const { page, pageSize, total } = head.data;
    const runs = this.#runs as ListedRun<RunParts>[];
    const passedOver = [...this.#passedOver];
    return { _tag: 'read', page: { page, pageSize, total, runs }, unread: this.#unread, passedOver };
  }

  #try<Result>(step: () => Result): Result | undefined {
    if (this.#isBroken) return undefined;
    try {
      return step();
    } catch (error) {
      if (!(error instanceof NotJson)) throw error;
      this.#isBroken = true;
      return undefined;
    }
  }

  #begin(): void {
    this.#runs = [];
    this.#unread = 0;
    Object.assign(this.#room, wholeRoom());
  }

  #add(kept: KeptJson | undefined): void {
    const { run, passedOver } = this.#read(kept);
    if (passedOver !== undefined && this.#passedOver.size < serviceAnswers.count.passedOver)
      this.#passedOver.add(passedOver);
    if (run === undefined) this.#unread += 1;
    else this.#runs.push(run);
  }

  #read(kept: KeptJson | undefined): RunRead {
    if (kept === undefined) return tooLarge;
    if (!this.#of) return this.#parse(kept, this.#reading);
    const { brief } = runReadings;
    const less = briefly(kept.json);
    const read = less ? this.#parse(less, brief) : tooLarge;
    return read.run && this.#of(read.run) ? this.#parse(kept, this.#reading) : read;
  }

  #parse({ json, values }: KeptJson, { schema }: RunReading): RunRead {
    this.#room.bytes -= json.length;
    this.#room.values -= values;
    try {
      return readRun(parseCheckedJson(json.toString()), schema, this.#quote);
    } catch (error) {
      if (error instanceof DocumentTooHeavy) return tooLarge;
      throw error;
    }
  }
}

const tooLarge: RunRead = {
  run: undefined,
  passedOver: 'the service lists a run that is too large to be read, or a page with too many runs; left out',
};

function wholeRoom(): Room {
  return { bytes: serviceAnswers.bytes.kept, values: serviceAnswers.count.values };
}

function pageOf(run: Kept): Kept {
  const head = ['page', 'pageSize', 'total'].map((name): [string, Kept] => [name, 'scalar']);
  return { fields: new Map([...head, ['runs', { each: run }]]) };
}

function briefly(run: Buffer): KeptJson | undefined {
  const room = { bytes: run.length, values: Number.POSITIVE_INFINITY };
  const filter = new JsonFilter(runReadings.brief.kept, room);
  filter.write(run);
  return filter.finish();
}
