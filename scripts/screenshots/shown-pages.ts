import axe from 'axe-core';
import type { Page } from 'playwright-core';
import type { Filled } from './filled-ledger.ts';

/** The addresses of all pages of the viewer, by the name of their pictures, for a ledger that is filled. */
export function shownPages({ batch, earlier, hard, modelless, failed, voided, queued }: Filled) {
  const variants = 'leftVariant=large&rightVariant=small';
  return {
    batches: '/',
    help: '/',
    batch: `/batch/${batch}`,
    list: `/batch/${batch}?view=list&at=${failed}`,
    voids: `/batch/${hard}`,
    unmatched: `/batch/${batch}?q=nothing`,
    compare: `/compare?left=${batch}&right=${batch}&${variants}`,
    earlier: `/compare?left=${earlier}&right=${batch}`,
    modelless: `/compare?left=${modelless}&right=${modelless}&leftVariant=solver&rightVariant=novice`,
    case: `/compare?left=${batch}&right=${batch}&${variants}&case=negative-durations`,
    trial: `/trial/${failed}`,
    void: `/trial/${voided}`,
    queued: `/trial/${queued}`,
    changes: `/trial/${failed}?tab=changes`,
    checks: `/trial/${failed}?tab=checks`,
    task: `/trial/${failed}?tab=task`,
    artifacts: `/trial/${failed}?tab=artifacts`,
    environment: `/trial/${failed}?tab=environment`,
    attempts: `/trial/${failed}?tab=attempts`,
    gradings: `/trial/${voided}?tab=gradings`,
    raw: `/trial/${failed}?tab=raw`,
    missing: '/trial/1000000',
    nowhere: '/nowhere',
  };
}

interface Violation {
  id: string;
  nodes: { html: string; failureSummary: string }[];
}

/** What axe finds on a page: its rule, and the elements that break it. */
export async function violations(page: Page): Promise<{ id: string; nodes: string[] }[]> {
  // Chromium's own evaluation: the page's policy lets no other script in.
  await page.evaluate(axe.source);
  const { violations: found } = (await page.evaluate('axe.run()')) as { violations: Violation[] };
  return found.map(({ id, nodes }) => ({
    id,
    nodes: nodes.map((node) => `${node.html} ${node.failureSummary}`),
  }));
}
