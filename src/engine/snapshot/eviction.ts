import type { EnginePort } from '../port/engine-port.ts';
import { isEngineFailure } from '../port/failure.ts';
import type { KeptSnapshot } from './kept-snapshots.ts';

/**
 * Which snapshots to remove. Both conditions hold where both are given; with none, all that can be removed
 * are.
 */
export interface EvictionRule {
  /** Bytes that all may take together. */
  budgetBytes?: number | undefined;
  /** Milliseconds since the last use; those used since then stay. */
  unusedForMs?: number | undefined;
}

/**
 * The snapshots that the rule removes, those used longest ago first. One that a container is made of stays,
 * and so does the parent of one that stays.
 */
export function evictable(
  snapshots: readonly KeptSnapshot[],
  { budgetBytes = -1, unusedForMs = Number.NEGATIVE_INFINITY }: EvictionRule,
  now: number,
): KeptSnapshot[] {
  const kept = new Set([...snapshots].sort((a, b) => a.usedAt - b.usedAt));
  const evicted: KeptSnapshot[] = [];
  for (;;) {
    const bytes = [...kept].reduce((sum, snapshot) => sum + snapshot.bytes, 0);
    if (bytes <= budgetBytes) return evicted;
    const parents = new Set([...kept].map(({ parentId }) => parentId));
    const next = [...kept].find(
      ({ id, inUse, usedAt }) => !inUse && !parents.has(id) && now - usedAt > unusedForMs,
    );
    if (next === undefined) return evicted;
    kept.delete(next);
    evicted.push(next);
  }
}

/**
 * Removes snapshots by name, so that one to which somebody gave another name is kept under that. Resolves
 * with those removed: one that came into use meanwhile stays. One round trip each.
 */
export async function removeSnapshots(
  port: EnginePort,
  snapshots: readonly KeptSnapshot[],
  signal?: AbortSignal,
): Promise<KeptSnapshot[]> {
  const removed: KeptSnapshot[] = [];
  for (const snapshot of snapshots) {
    try {
      await port.remove('image', snapshot.name, signal);
      removed.push(snapshot);
    } catch (thrown) {
      if (!isEngineFailure(thrown, 'conflict')) throw thrown;
    }
  }
  return removed;
}
