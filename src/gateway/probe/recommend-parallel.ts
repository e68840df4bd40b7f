import type { BenchLevel } from './bench-level.ts';

export interface Recommendation {
  /** Undefined if even the lowest level had failures. */
  maxParallel: number | undefined;
  why: string;
}

/** A level is worth it if it brings at least this much more throughput. */
const leastGain = 0.1;
/** Answers must not take this many times as long as at the lowest level. */
const muchSlower = 2;

/**
 * The level up to which more parallelism pays: beyond it, throughput grows by less than a tenth, answers take
 * twice as long as at the lowest level, or requests fail.
 *
 * @param levels in ascending order
 */
export function recommendParallel(levels: readonly BenchLevel[]): Recommendation {
  const [lowest, ...higher] = levels;
  if (!lowest) return { maxParallel: undefined, why: 'nothing was measured' };
  const broken = brokenAt(lowest);
  if (broken !== undefined) return { maxParallel: undefined, why: broken };
  let best = lowest;
  for (const level of higher) {
    const why = brokenAt(level) ?? notWorth(level, best, lowest);
    if (why !== undefined) return { maxParallel: best.parallel, why };
    best = level;
  }
  const why = `throughput still grows at ${best.parallel}, the highest that was measured`;
  return { maxParallel: best.parallel, why };
}

function brokenAt({ parallel, limited, failed, succeeded, failure }: BenchLevel): string | undefined {
  const all = limited + failed + succeeded;
  if (limited > 0) return `at ${parallel}, ${limited} of ${all} requests were refused with 429`;
  if (failed > 0) return `at ${parallel}, ${failed} of ${all} requests failed: ${failure}`;
  return undefined;
}

function notWorth(level: BenchLevel, best: BenchLevel, lowest: BenchLevel): string | undefined {
  const gain = level.tokensPerSecond / best.tokensPerSecond - 1;
  if (!(gain >= leastGain)) {
    const change = gain < 0 ? `falls by ${percent(-gain)}` : `grows by only ${percent(gain)}`;
    return `from ${best.parallel} to ${level.parallel}, throughput ${change}`;
  }
  const slower = (level.latencyP50 ?? 0) / (lowest.latencyP50 ?? 0);
  if (slower >= muchSlower)
    return `at ${level.parallel}, an answer takes ${slower.toFixed(1)} times as long as at ${lowest.parallel}`;
  return undefined;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
