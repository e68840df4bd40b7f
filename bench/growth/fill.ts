import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { completeListings } from '../../src/ledger/listings.ts';
import { fillBatch } from '../../test/viewer/filled-ledger.ts';

/** Trials of a batch: 50 cases, 2 variants, each case ten times. */
const runs = 100;
const ordinals = 10;

/**
 * Fills a data folder with so many finished trials, two thirds of them passed, in batches of 1000. The first
 * two trials are made as the program does; all others are copies of their rows, and share their records.
 */
export async function fillLedger(dataFolder: string, trials: number): Promise<void> {
  using ledger = new Ledger(dataFolder, systemClock);
  const { records } = ledger;
  const key = await fillBatch(ledger, {
    id: 'batch_first',
    suite: 'growth',
    cases: ['case'],
    variants: ['variant'],
    repeats: 2,
    found: (_case, _variant, ordinal) => ({
      verdict: ordinal === 0 ? 'passed' : 'failed',
      verifySteps: [{ command: 'npm test', exitCode: ordinal, output: 'no\n', outputTruncated: false }],
    }),
  });
  completeListings(ledger, key);
  // The other batches are newer.
  records.run('UPDATE batches SET started_at = 0');
  const numbers = (count: string) =>
    `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${count})`;
  const batches = Math.ceil(trials / runs / ordinals);
  records.transaction(() => {
    records.run(
      `${numbers('?1')} INSERT INTO batches (key, service, id, suite, started_at, state)
       SELECT 1000 + i, 'embedded', 'batch_' || hex(randomblob(10)), 'growth', 1000 + i, 'finished' FROM n`,
      batches,
    );
    records.run(
      `${numbers('?1')} INSERT INTO runs (key, batch, id, task_index, case_id, case_name, variant, memory, state)
       SELECT 1000 + i, 1000 + i / ${runs}, 'run_' || hex(randomblob(10)), i % ${runs},
         'case-' || (i % ${runs} / 2), 'Case', 'variant-' || (i % 2), '{}', 'finished' FROM n`,
      batches * runs,
    );
    records.run(
      `${numbers('?1')} INSERT INTO trials (key, run, ordinal, state, verdict, result, finished_at, duration_ms,
         tokens, cost_usd, record_bytes, listing)
       SELECT 1000 + i, 1000 + i / ${ordinals}, i % ${ordinals}, state, verdict, result, finished_at, duration_ms,
         tokens, cost_usd, record_bytes, listing
       FROM n JOIN trials ON trials.key = 1 + (i % 3 = 0)`,
      trials,
    );
    records.run(
      `INSERT INTO attempts (trial, number, started_at, ended_at, ending)
       SELECT key, 1, finished_at - duration_ms, finished_at, verdict FROM trials WHERE key >= 1000`,
    );
    records.run(
      `INSERT INTO reports (trial, body, state, next_at, since)
       SELECT trials.key, body, 'delivered', next_at, since FROM trials JOIN reports ON reports.trial = 1
       WHERE trials.key >= 1000`,
    );
    records.run("UPDATE reports SET state = 'delivered'");
    records.run(
      `INSERT INTO changes (at, subject, of, state)
       SELECT finished_at, 'trial', trials.key, kind.value FROM trials, json_each('["queued", "running", "finished"]') AS kind
       WHERE trials.key >= 1000`,
    );
  });
}
