import { messageOf } from '../../offsite-error.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { Image } from '../port/images.ts';
import { evictable, removeSnapshots } from './eviction.ts';
import { keptSnapshots } from './kept-snapshots.ts';

/**
 * A use within this time of the last noted one is not noted: most uses cost nothing, and hours are exact
 * enough for eviction.
 */
const NOTE_EVERY_MS = 3_600_000;
/**
 * One that was just used may be about to be used again, by this agent or another, without a container of it
 * right now.
 */
const SPARED_MS = 10 * 60_000;

export interface UpkeepOptions {
  port: EnginePort;
  repository: string;
  /** Bytes that all snapshots may take together; unlimited when left out. */
  budgetBytes: number | undefined;
  /**
   * For what the user may want to know; nobody waits for this work, so that its failures are told here too.
   */
  note(message: string): void;
}

/**
 * What keeps snapshots from filling the disk, done beside the work that needs them. Disposing waits for what
 * is under way.
 */
export interface Upkeep extends AsyncDisposable {
  used(snapshot: Image): void;
  built(imageId: string): void;
}

export function upkeepOf({ port, repository, budgetBytes, note }: UpkeepOptions): Upkeep {
  const { clock } = port;
  /** By id: when this process last used it. The engine's note of that is up to an hour older. */
  const usedAt = new Map<string, number>();
  const noted = new Map<string, number>();
  const underWay = new Set<Promise<void>>();
  let evicting = false;

  function background(doing: string, work: () => Promise<void>): Promise<void> {
    const done = work().catch((error: unknown) => note(`${doing} failed: ${messageOf(error)}`));
    underWay.add(done);
    return done.finally(() => underWay.delete(done));
  }

  async function evict(budget: number): Promise<void> {
    const all = await keptSnapshots(port, repository);
    const asUsed = all.map((each) => ({ ...each, usedAt: Math.max(each.usedAt, usedAt.get(each.id) ?? 0) }));
    const rule = { budgetBytes: budget, unusedForMs: SPARED_MS };
    const removed = await removeSnapshots(port, evictable(asUsed, rule, clock.now()));
    for (const { id } of removed) usedAt.delete(id);
    if (removed.length > 0) note(`snapshots removed to stay within their budget: ${removed.length}`);
  }

  return {
    used({ id, names, namedAt }) {
      const now = clock.now();
      usedAt.set(id, now);
      if (now - Math.max(namedAt, noted.get(id) ?? 0) < NOTE_EVERY_MS) return;
      noted.set(id, now);
      const [, tag] = names.find((name) => name.startsWith(`${repository}:`))?.split(':') ?? [];
      if (tag === undefined) return;
      background('noting the use of a snapshot', async () => {
        // To give it the name it has changes nothing but the time that the engine notes.
        await port.images.tag(id, `${repository}:${tag}`);
      });
    },
    built(imageId) {
      const now = clock.now();
      usedAt.set(imageId, now);
      noted.set(imageId, now);
      // An eviction that is under way may not see this image; the next build's will.
      if (budgetBytes === undefined || evicting) return;
      evicting = true;
      background('removing old snapshots', () => evict(budgetBytes)).finally(() => {
        evicting = false;
      });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(underWay);
    },
  };
}
