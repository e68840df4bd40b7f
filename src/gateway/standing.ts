import type { ModelRole, Standing } from './gateway.ts';

/**
 * How a request for an answer went. `request`: the model refused what it was asked, which is the asker's own
 * doing, such as a conversation that is too long. `undecided`: its client ended it, or it was refused here.
 */
export type Outcome = 'answered' | 'model' | 'request' | 'undecided';

/** Statuses below 500 by which a model says that it is not there, not open to us, or has no time. */
const modelsOwn: ReadonlySet<number> = new Set([401, 403, 404, 408, 409, 425, 429]);

/** Who is responsible for an error of this status. */
export function faultOf(status: number): 'model' | 'request' {
  return status >= 500 || modelsOwn.has(status) ? 'model' : 'request';
}

export class Standings {
  readonly #standings = new Map<ModelRole, Standing>();

  of(role: ModelRole): Readonly<Standing> {
    return this.#standings.get(role) ?? { acted: false, modelFailure: undefined };
  }

  /** @param passed whether some of an answer, and not of an error, has been passed on */
  note(role: ModelRole, outcome: Outcome, passed: boolean, trouble: string): void {
    const { acted, modelFailure } = this.of(role);
    this.#standings.set(role, {
      // A client that ends an answer early may have read enough of it.
      acted: acted || outcome === 'answered' || (outcome === 'undecided' && passed),
      modelFailure: outcome === 'undecided' ? modelFailure : outcome === 'model' ? trouble : undefined,
    });
  }
}
