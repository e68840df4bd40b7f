import { serviceAnswers } from '../bounds/service.ts';
import type { RequestOf, ResponseOf } from '../contract/operations.ts';
import type { RunRecord } from '../contract/record.ts';
import { OffsiteError } from '../offsite-error.ts';

type PageRequest = RequestOf<'evals.runs.list'>;
type Page = ResponseOf<'evals.runs.list'>;

/**
 * The number of a service's first page; the specification does not define it. Found while listing, kept per
 * client.
 */
export interface PageNumbering {
  first: 0 | 1;
}

/**
 * A case's runs, newest first, each once. Requests pages as they are needed.
 *
 * Ends when `total` runs were seen, at an empty page, or after two pages in a row with nothing new: one such
 * page appears if twenty runs start in the meantime, two mean a service that ignores the page number. A
 * service that counts from 0 answers page 1 with its second page. If that page is short, or runs are missing
 * at the end, page 0 has them.
 */
export async function* listRuns(
  readPage: (request: PageRequest) => Promise<Page>,
  filter: Omit<PageRequest, 'page'>,
  numbering: PageNumbering,
): AsyncGenerator<RunRecord, void, undefined> {
  const seen = new Set<string>();
  const unseen = ({ runs }: Page) =>
    runs.filter(({ id }) => {
      const isNew = !seen.has(id);
      seen.add(id);
      return isNew;
    });

  let number: number = numbering.first;
  let page = await readPage({ ...filter, page: number });
  if (number === 1 && isLaterPage(page)) {
    numbering.first = 0;
    number = 0;
    page = await readPage({ ...filter, page: number });
  }
  for (let stale = 0; page.runs.length > 0 && stale < 2; ) {
    const fresh = unseen(page);
    yield* fresh;
    if (seen.size >= page.total) return;
    stale = fresh.length === 0 ? stale + 1 : 0;
    if (seen.size >= serviceAnswers.count.runs) throw endless();
    number += 1;
    page = await readPage({ ...filter, page: number });
  }
  if (numbering.first === 0 || seen.size >= page.total) return;
  const missed = unseen(await readPage({ ...filter, page: 0 }));
  if (missed.length > 0) numbering.first = 0;
  yield* missed;
}

function endless(): OffsiteError {
  return new OffsiteError(`the service lists more than ${serviceAnswers.count.runs} runs of one case`, {
    code: 'CLIENT_LIST_ENDLESS',
    kind: 'infrastructure',
  });
}

/** A first page is full or has all runs. */
function isLaterPage({ runs, pageSize, total }: Page): boolean {
  return runs.length < Math.min(pageSize, total);
}
