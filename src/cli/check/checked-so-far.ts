import type { SuitePlan } from '../../suite/plan.ts';
import { endedBy } from '../results/incomplete.ts';
import { statesOf } from './check-spec.ts';
import type { CheckedCase, CheckedState } from './checked-state.ts';

type Name = CheckedState['state'];

/** Collects what a check has found so far, in case the check is stopped. */
export class CheckedSoFar {
  readonly #planned: { id: string; names: Name[] }[];
  readonly #begun = new Set<string>();
  readonly #found = new Map<string, CheckedState>();

  constructor(plan: SuitePlan) {
    this.#planned = plan.cases.map((planned) => ({
      id: planned.request.id,
      names: statesOf(plan, planned).map(({ state }) => state),
    }));
  }

  readonly begin = (id: string, state: Name): void => {
    this.#begun.add(keyOf(id, state));
  };

  readonly add = (id: string, state: CheckedState): void => {
    this.#found.set(keyOf(id, state.state), state);
  };

  /** All planned cases. For each state without a result, `why` names what ended the command. */
  cases(thrown: unknown): CheckedCase[] {
    const { why } = endedBy(thrown);
    return this.#planned.map(({ id, names }) => ({
      id,
      states: names.flatMap((name) => this.#found.get(keyOf(id, name)) ?? []),
      unfinished: names
        .filter((name) => !this.#found.has(keyOf(id, name)))
        .map((state) => {
          const hasBegun = this.#begun.has(keyOf(id, state));
          return { state, why: `${hasBegun ? 'has no result' : 'did not begin'}: ${why}` };
        }),
    }));
  }
}

function keyOf(id: string, state: Name): string {
  return JSON.stringify([id, state]);
}
