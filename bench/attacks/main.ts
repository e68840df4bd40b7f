import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { measureAttacks } from './attacks.ts';

/**
 * How long an honest client of the service waits while four other keys attack it. The floor is the first row:
 * the four only ask who they are. `node bench/attacks/main.ts [--json] [--quick] [--only WORDS]`
 */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'offsite-bench-'));
try {
  const rows = await measureAttacks(folder, values.quick ? 1_000 : 4_000, values.only);
  if (values.json) console.log(JSON.stringify(rows, null, 2));
  else {
    console.log('| what four keys send, again and again | answers | p99 ms | longest ms | peak MiB |');
    console.log('| --- | --- | ---: | ---: | ---: |');
    for (const { attack, answered, p99Ms, maxMs, peakMiB } of rows)
      console.log(
        `| ${attack} | ${Object.keys(answered).join(', ')} | ${p99Ms.toFixed(0)} | ${maxMs.toFixed(0)} | ${peakMiB} |`,
      );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
