import { infrastructureError, type OffsiteError } from '../../base/offsite-error.ts';
import { serviceAnswers } from '../../bounds/service.ts';
import type { RequestOf } from '../../contract/operations.ts';
import { Conflict, DecodeRefusal, NotFound } from '../refusal.ts';
import type { ListedRun, RunParts, RunsPage } from './page-reader.ts';

type PageRequest = RequestOf<'evals.runs.list'>;

export interface ReadPage<Parts extends RunParts> {
  page: RunsPage<Parts>;
  /** How many runs of the page were passed over. */
  unread: number;
}

/**
 * The number of a service's first page; the specification does not define it. Found while listing, kept per
 * client, and 1 as long as it is not known. Several listings use it at a time. Once it is known to be 1, page
 * 0 is never requested: a strict service refuses it.
 */
export interface PageNumbering {
  first?: 0 | 1;
}

type Read<Parts extends RunParts> = (page: number) => Promise<ReadPage<Parts>>;

/**
 * A case's runs, newest first, each once. Requests pages as they are needed.
 *
 * Ends when `total` runs were seen, at an empty page, or after two pages in a row with nothing new: one such
 * page appears if twenty runs start in the meantime, two mean a service that ignores the page number.
 *
 * Page 0 is requested only if page 1 seems not to be the first one: page 1 has exactly as many runs as a
 * second page would have, or a whole page of runs is missing at the end. A service that shows all its runs
 * from page 1 on counts from 1, even if some of them could not be read.
 */
export async function* listRuns<Parts extends RunParts>(
  readPage: (request: PageRequest) => Promise<ReadPage<Parts>>,
  filter: Omit<PageRequest, 'page'>,
  numbering: PageNumbering,
): AsyncGenerator<ListedRun<Parts>, void, undefined> {
  const read = (page: number) => readPage({ ...filter, page });
  const seen = new Set<string>();
  const unseen = ({ page }: ReadPage<Parts>) =>
    page.runs.filter(({ id }) => {
      const isNew = !seen.has(id);
      seen.add(id);
      return isNew;
    });
  let { first, current } = await firstPage(read, numbering);
  let number: number = first;
  let unread = 0;
  for (let stale = 0; sizeOf(current) > 0 && stale < 2; ) {
    const { total, pageSize } = current.page;
    const fresh = unseen(current);
    yield* fresh;
    unread += current.unread;
    const isLast = sizeOf(current) < pageSize || (number - first + 1) * pageSize >= total;
    if (seen.size >= total || (isLast && seen.size + unread >= total)) {
      numbering.first ??= 1;
      return;
    }
    stale = fresh.length === 0 ? stale + 1 : 0;
    if (seen.size >= serviceAnswers.count.runs) throw endless();
    number += 1;
    current = await read(number);
  }
  const { total, pageSize } = current.page;
  if (numbering.first === first || total - seen.size - unread < Math.max(1, pageSize)) return;
  const zero = await zeroPage(read, numbering, seen);
  if (zero) yield* unseen(zero);
}

/**
 * A page by its number as people count, from 1, whatever number the service gives to its first page. Reads
 * the first page before another one, unless its number is known.
 */
export async function pageOf<Parts extends RunParts>(
  readPage: (request: PageRequest) => Promise<ReadPage<Parts>>,
  { page: number = 1, ...filter }: PageRequest,
  numbering: PageNumbering,
): Promise<RunsPage<Parts>> {
  const read = (page: number) => readPage({ ...filter, page });
  if (number <= 1 || numbering.first === undefined) {
    const { current } = await firstPage(read, numbering);
    if (number <= 1) return { ...current.page, page: 1 };
  }
  const { page } = await read(number - 1 + (numbering.first ?? 1));
  return { ...page, page: number };
}

/** Reads the first page, and finds out which number it has if page 1 looks like a second one. */
async function firstPage<Parts extends RunParts>(
  read: Read<Parts>,
  numbering: PageNumbering,
): Promise<{ first: 0 | 1; current: ReadPage<Parts> }> {
  const first = numbering.first ?? 1;
  const current = await read(first);
  // Another listing may have found meanwhile that page 0 is the first.
  if (first === 0 || numbering.first === first || !isSecondPage(current)) return { first, current };
  const zero = await zeroPage(read, numbering, new Set(current.page.runs.map(({ id }) => id)));
  return zero ? { first: 0, current: zero } : { first, current };
}

/**
 * Reads page 0 of a service that may count from 0. Undefined if the service refuses that number, or has no
 * other runs there: then it counts from 1.
 */
async function zeroPage<Parts extends RunParts>(
  read: Read<Parts>,
  numbering: PageNumbering,
  known: ReadonlySet<string>,
): Promise<ReadPage<Parts> | undefined> {
  const zero = await read(0).catch((error: unknown) => {
    if (error instanceof DecodeRefusal || error instanceof NotFound || error instanceof Conflict)
      return undefined;
    throw error;
  });
  const isFirst = zero?.page.runs.some(({ id }) => !known.has(id));
  if (isFirst) numbering.first = 0;
  else numbering.first ??= 1;
  return isFirst ? zero : undefined;
}

function sizeOf({ page, unread }: ReadPage<RunParts>): number {
  return page.runs.length + unread;
}

/** Whether page 1 has fewer runs than a first page, and exactly as many as the page after it. */
function isSecondPage(read: ReadPage<RunParts>): boolean {
  const { total, pageSize } = read.page;
  const size = sizeOf(read);
  return size < Math.min(pageSize, total) && size === Math.max(0, Math.min(pageSize, total - pageSize));
}

function endless(): OffsiteError {
  return infrastructureError(
    'CLIENT_LIST_ENDLESS',
    `the service lists more than ${serviceAnswers.count.runs} runs of one case`,
  );
}
