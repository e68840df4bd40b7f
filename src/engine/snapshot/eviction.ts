import type { EnginePort } from '../port/engine-port.ts';
import { isEngineFailure } from '../port/failure.ts';
import type { KeptSnapshot, ListedSnapshot } from './kept-snapshots.ts';

/**
 * Which snapshots to remove. If a budget and a time are given, both must hold; if none is, everything
 * removable is removed.
 */
export interface EvictionRule extends SnapshotBudget {
  /** Milliseconds; snapshots used within this time stay. */
  unusedForMs?: number | undefined;
}

/** Snapshots that an engine keeps at most: each listing of images takes longer with each of them. */
export const mostSnapshots = 1_000;

/** What all snapshots may take together; without a number, there is no limit. */
export interface SnapshotBudget {
  budgetBytes?: number | undefined;
  most?: number | undefined;
}

export function exceeds(
  snapshots: readonly ListedSnapshot[],
  { budgetBytes = Number.POSITIVE_INFINITY, most = Number.POSITIVE_INFINITY }: SnapshotBudget,
): boolean {
  return snapshots.length > most || snapshots.reduce((sum, { bytes }) => sum + bytes, 0) > budgetBytes;
}

/**
 * The snapshots that the rule removes, least recently used first. A snapshot that a container uses stays, and
 * so does the parent of one that stays.
 */
export function evictable(
  snapshots: readonly KeptSnapshot[],
  { budgetBytes, most, unusedForMs = Number.NEGATIVE_INFINITY }: EvictionRule,
  now: number,
): KeptSnapshot[] {
  const kept = new Set([...snapshots].sort((a, b) => a.usedAt - b.usedAt));
  const evicted: KeptSnapshot[] = [];
  const hasBudget = budgetBytes !== undefined || most !== undefined;
  for (;;) {
    if (hasBudget && !exceeds([...kept], { budgetBytes, most })) return evicted;
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
 * Removes snapshots by name, so one with a second name survives under that. Resolves with those removed: a
 * snapshot that came into use in the meantime stays. One round trip each.
 */
export async function removeSnapshots(
  port: EnginePort,
  snapshots: readonly KeptSnapshot[],
  signal?: AbortSignal,
): Promise<KeptSnapshot[]> {
  const removed: KeptSnapshot[] = [];
  for (const snapshot of snapshots) {
    try {
      // The volume first: if a container uses it, this throws, and its snapshot stays too.
      if (snapshot.volume !== undefined) await port.remove('volume', snapshot.volume, signal);
      await port.remove('image', snapshot.name, signal);
      removed.push(snapshot);
      // Stops at the first step that another image uses too: the engine refuses to remove it.
      for (const step of snapshot.stepIds) await port.remove('image', step, signal);
    } catch (thrown) {
      if (!isEngineFailure(thrown, 'conflict')) throw thrown;
    }
  }
  return removed;
}
