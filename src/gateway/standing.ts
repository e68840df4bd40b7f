import { isContextFull } from './chat/model-errors.ts';
import type { ModelRole, Standing } from './gateway.ts';
import type { ModelError } from './wires/model-error.ts';

/**
 * The outcome of a request for an answer. `model`: the model failed. `request`: the model refused the
 * request, and the client caused that, for example with a conversation that is too long. `undecided`: the
 * client ended it, or the gateway refused it.
 */
export type Outcome = 'answered' | 'model' | 'request' | 'undecided';

/** Statuses below 500 that mean that the model is missing, not accessible, or too busy. */
const modelsOwn: ReadonlySet<number> = new Set([401, 403, 404, 408, 409, 425, 429]);

/** Who is responsible for an error of this status. */
export function faultOf(status: number): 'model' | 'request' {
  return status >= 500 || modelsOwn.has(status) ? 'model' : 'request';
}

/**
 * Who is responsible for an error in an answer of status 200: the model, which did not answer, unless the
 * error names the request.
 */
export function faultIn({ isOverload, namesRequest, codes, message = '' }: ModelError): 'model' | 'request' {
  if (isOverload) return 'model';
  return namesRequest || isContextFull(codes, message) ? 'request' : 'model';
}

export class Standings {
  readonly #standings = new Map<ModelRole, Standing>();

  of(role: ModelRole): Readonly<Standing> {
    return this.#standings.get(role) ?? { acted: false, modelFailure: undefined, lastFailure: undefined };
  }

  /** @param passed whether part of an answer that is not an error was passed on */
  note(role: ModelRole, outcome: Outcome, passed: boolean, problem: string): void {
    const { acted, modelFailure, lastFailure } = this.of(role);
    const isDecided = outcome !== 'undecided';
    this.#standings.set(role, {
      // A client that ends an answer early may have read enough of it to act.
      acted: acted || outcome === 'answered' || (outcome === 'undecided' && passed),
      modelFailure: isDecided ? (outcome === 'model' ? problem : undefined) : modelFailure,
      lastFailure: isDecided ? (outcome === 'answered' ? undefined : problem) : lastFailure,
    });
  }
}
