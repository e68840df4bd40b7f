import { systemClock } from '../../src/base/clock.ts';
import { settleHeap } from '../../src/base/heap.ts';
import { createClient } from '../../src/client/client.ts';

/**
 * Reads a page of runs in a process of its own: `node page-program.ts URL PARTS`. Prints how many runs and
 * trials it read, its peak resident memory in MiB and the milliseconds that it took.
 */
settleHeap();
const [url = '', parts = 'brief'] = process.argv.slice(2);
await using client = createClient({ url, apiKey: 'a-key', clock: systemClock });
const startedAt = performance.now();
const { runs } = await client.page({ caseId: 'c' }, { parts: parts as 'results' });
console.log(
  JSON.stringify({
    runs: runs.length,
    trials: runs.reduce((sum, { trials = [] }) => sum + trials.length, 0),
    peakMiB: Math.round(process.resourceUsage().maxRSS / 1024),
    ms: Math.round(performance.now() - startedAt),
  }),
);
