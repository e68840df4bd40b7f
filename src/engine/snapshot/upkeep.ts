import { messageOf } from '../../base/offsite-error.ts';
import { plural, size } from '../../text/quantities.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { Image } from '../port/images.ts';
import { evictable, exceeds, mostSnapshots as most, removeSnapshots } from './eviction.ts';
import { type KeptSnapshot, listedSnapshots, withLastUse } from './kept-snapshots.ts';

/**
 * A use this soon after the last recorded one is not recorded: so most uses cost nothing, and hours are exact
 * enough for eviction.
 */
const noteEveryMs = 3_600_000;
/** Only one of this many kept images starts an eviction. */
const keptPerEviction = 16;
/**
 * Milliseconds. A snapshot that was just used may be used again soon, by this Offsite process or another,
 * although no container uses it right now.
 */
const sparedMs = 10 * 60_000;

export interface UpkeepOptions {
  port: EnginePort;
  repository: string;
  /** Bytes that all snapshots may take together; undefined for unlimited. */
  budgetBytes: number | undefined;
  /** Receives messages for the user; nobody waits for this work, so its failures are reported here too. */
  note(message: string): void;
}

/** Keeps snapshots from filling the disk, in the background. Disposing waits for work in progress. */
export interface Upkeep extends AsyncDisposable {
  used(snapshot: Image): void;
  built(imageId: string): void;
  /**
   * An image of a used container was kept. There may be one for each trial, so only some start an eviction.
   */
  kept(imageId: string): void;
}

export function upkeepOf({ port, repository, budgetBytes, note }: UpkeepOptions): Upkeep {
  const { clock } = port;
  /** When this process last used each snapshot, by id. The engine's record is up to an hour older. */
  const usedAt = new Map<string, number>();
  const noted = new Map<string, number>();
  const underWay = new Set<Promise<void>>();
  let evicting = false;
  let kept = 0;

  function background(doing: string, work: () => Promise<void>): Promise<void> {
    const done = work().catch((error: unknown) => note(`${doing} failed: ${messageOf(error)}`));
    underWay.add(done);
    return done.finally(() => underWay.delete(done));
  }

  async function evict(budgetBytes: number): Promise<void> {
    const listed = await listedSnapshots(port, repository);
    if (!exceeds(listed, { budgetBytes, most })) return;
    const all = await withLastUse(port, listed);
    const asUsed = all.map((each) => ({ ...each, usedAt: Math.max(each.usedAt, usedAt.get(each.id) ?? 0) }));
    // Some more than too many go, so that not each of the next snapshots begins another eviction.
    const rule = { budgetBytes, most: most * 0.9, unusedForMs: sparedMs };
    const removed = await removeSnapshots(port, evictable(asUsed, rule, clock.now()));
    for (const { id } of removed) usedAt.delete(id);
    if (removed.length > 0)
      note(evictedText(removed, exceeds(listed, { budgetBytes }) ? budgetBytes : undefined));
  }

  function built(imageId: string): void {
    const now = clock.now();
    usedAt.set(imageId, now);
    noted.set(imageId, now);
    // An eviction in progress may not see this image; the next build's eviction will.
    if (budgetBytes === undefined || evicting) return;
    evicting = true;
    background('removing old snapshots', () => evict(budgetBytes)).finally(() => {
      evicting = false;
    });
  }

  return {
    used({ id, names, namedAt }) {
      const now = clock.now();
      usedAt.set(id, now);
      if (now - Math.max(namedAt, noted.get(id) ?? 0) < noteEveryMs) return;
      noted.set(id, now);
      const [, tag] = names.find((name) => name.startsWith(`${repository}:`))?.split(':') ?? [];
      if (tag === undefined) return;
      background('recording the use of a snapshot', async () => {
        // Naming it again changes only the time that the engine records.
        await port.images.tag(id, `${repository}:${tag}`);
      });
    },
    built,
    kept(imageId) {
      if (kept++ % keptPerEviction === 0) built(imageId);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(underWay);
    },
  };
}

/** @param budgetBytes the limit that was exceeded; undefined if it was the number of snapshots */
function evictedText(removed: readonly KeptSnapshot[], budgetBytes: number | undefined): string {
  const freed = removed.reduce((sum, { bytes }) => sum + bytes, 0);
  const limit =
    budgetBytes === undefined
      ? plural(most, 'snapshot')
      : `${size(budgetBytes)} (advanced.snapshots.budget in offsite.yaml)`;
  return (
    `removed ${plural(removed.length, 'old snapshot')} of ${size(freed)}: the engine had more than ${limit}, ` +
    'those of all users together; a trial that needs one makes it again'
  );
}
