import { exceeds, mostSnapshots } from '../../../engine/snapshot/eviction.ts';
import { listedSnapshots, snapshotRepository } from '../../../engine/snapshot/kept-snapshots.ts';
import { plural } from '../../../text/quantities.ts';
import { byteSize } from '../byte-size.ts';
import { engineCheck } from '../check.ts';

/** How many snapshots are kept: they take disk space, and each makes a listing of images slower. */
export const snapshots = engineCheck('snapshots', async ({ port }, { config, signal }) => {
  const listed = await listedSnapshots(port, snapshotRepository, signal);
  const bytes = listed.reduce((sum, snapshot) => sum + snapshot.bytes, 0);
  const { budget } = config.snapshots;
  const found =
    `${plural(listed.length, 'snapshot')} of ${byteSize(bytes)}; ` +
    `at most ${mostSnapshots} of ${byteSize(budget)} are kept`;
  if (!exceeds(listed, { budgetBytes: budget, most: mostSnapshots })) return { state: 'ok', found };
  const fix =
    'The next run that makes one removes those not used for the longest time. To do it now: offsite images prune';
  return { state: 'warn', found, fix };
});
