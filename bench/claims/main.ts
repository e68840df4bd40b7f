import { parseArgs } from 'node:util';
import { openFlakyService } from '../../test/cli/flaky-service.ts';
import { openPlace } from '../../test/cli/place.ts';
import { shareSuite } from '../../test/daemon/sharing.ts';

/**
 * Two daemons with data folders of their own work off one suite of no-op trials, and are killed now and then.
 * Prints one line of JSON. Exits with 1 if a trial is not recorded, or was run to the end twice.
 *
 *   claims [--trials 200] [--kill 10] [--lease 60s] [--without]
 *
 * `--without` hides the operation from the daemons, to show what they would do without claims.
 */
const { values } = parseArgs({
  options: {
    trials: { type: 'string', default: '200' },
    kill: { type: 'string', default: '10' },
    lease: { type: 'string', default: '60s' },
    without: { type: 'boolean', default: false },
    // Every bench accepts these; the result is one line.
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});
const trialsOfACase = 10;
/** Milliseconds that a no-op trial may take on a slow machine; only for hangs. */
const trialTimeoutMs = 30_000;

const cases = Math.ceil(Number(values.quick ? '40' : values.trials) / trialsOfACase);
const trials = cases * trialsOfACase;
using place = openPlace();
await using service = await openFlakyService(place);
if (values.without) service.alter = (operation, body) => (operation === 'openapi.json' ? '{}' : body);
const startedAt = performance.now();
const shared = await shareSuite(place, service, {
  cases,
  trials: trialsOfACase,
  kills: Number(values.kill),
  lease: values.lease,
  concurrency: 2,
  timeoutMs: trials * trialTimeoutMs,
});
const seconds = Math.round((performance.now() - startedAt) / 1000);
const requests = Object.fromEntries(
  [...Map.groupBy(service.asked, (operation) => operation)].map(([name, asked]) => [name, asked.length]),
);
console.log(JSON.stringify({ trials, ...shared, seconds, requests }));
if (shared.recorded < trials || shared.twice > 0) process.exitCode = 1;
