/** One process that asks a model, as the others know it. */
export interface Holder {
  /** The number of its newest renewal. */
  sequence: number;
  /** The most requests that it may have in flight, by the last messages in both directions. */
  counted: number;
  /** Requests that it has in flight or waiting. */
  wants: number;
  /** How many requests the model takes at a time, by the configuration of this process. */
  limit: number;
  /** Epoch milliseconds. */
  renewedAt: number;
  /** Since when it has permits; undefined while it has none. */
  servedSince: number | undefined;
  /** When it had permits last. */
  servedAt: number;
}

export interface Renewal {
  holder: string;
  sequence: number;
  /** What the process will not exceed until it has the answer. Never more than it was granted. */
  keep: number;
  wants: number;
  limit: number;
}

/** Milliseconds for which a holder keeps its turn while others wait. */
const turnMs = 10_000;

/**
 * Divides the requests that a model takes at a time between the processes that ask it. What all holders may
 * have in flight together never exceeds the smallest limit that one of them names: a permit is granted only
 * if it is free. A permit is free only after its holder has said that it does not use the permit, or has been
 * silent for `termMs`.
 */
export class Shares {
  readonly holders: Map<string, Holder>;
  readonly #termMs: number;

  constructor(termMs: number, holders: readonly (readonly [string, Holder])[] = []) {
    this.#termMs = termMs;
    this.holders = new Map(holders);
  }

  /** Returns how many requests the holder may have in flight. */
  renew({ holder: name, sequence, keep, wants, limit }: Renewal, now: number): number {
    this.expire(now);
    const known = this.holders.get(name);
    // A renewal that arrives late says nothing about what its holder was granted since.
    if (known && sequence <= known.sequence) return known.counted;
    if (wants === 0 && keep === 0) {
      this.holders.delete(name);
      return 0;
    }
    const holder: Holder = {
      sequence,
      wants,
      limit,
      renewedAt: now,
      counted: keep,
      servedSince: known?.servedSince,
      servedAt: known?.servedAt ?? 0,
    };
    this.holders.set(name, holder);
    const target = this.#fairShares(now).get(name) ?? 0;
    const grant = target > keep ? keep + Math.min(target - keep, this.#free) : target;
    holder.counted = Math.max(grant, keep);
    if (grant > 0) {
      holder.servedSince ??= now;
      holder.servedAt = now;
    } else holder.servedSince = undefined;
    return grant;
  }

  /** Forgets holders that were silent for too long: they have ended their requests by themselves. */
  expire(now: number): void {
    for (const [name, { renewedAt }] of this.holders)
      if (now - renewedAt > this.#termMs) this.holders.delete(name);
  }

  get #limit(): number {
    return Math.min(...[...this.holders.values()].map(({ limit }) => limit));
  }

  get #free(): number {
    const counted = [...this.holders.values()].reduce((sum, holder) => sum + holder.counted, 0);
    return Math.max(0, this.#limit - counted);
  }

  /** One permit to each in turn, until all have what they want or none is left. */
  #fairShares(now: number): Map<string, number> {
    const shares = new Map<string, number>();
    const isInTurn = ({ servedSince }: Holder) => servedSince !== undefined && now - servedSince < turnMs;
    const inOrder = [...this.holders].toSorted(
      ([, one], [, other]) =>
        Number(isInTurn(other)) - Number(isInTurn(one)) || one.servedAt - other.servedAt,
    );
    for (let left = this.#limit; left > 0; ) {
      const wanting = inOrder.filter(([name, { wants }]) => (shares.get(name) ?? 0) < wants);
      if (wanting.length === 0) break;
      for (const [name] of wanting.slice(0, left)) {
        shares.set(name, (shares.get(name) ?? 0) + 1);
        left--;
      }
    }
    return shares;
  }
}
