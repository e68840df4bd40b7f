import type { Clock } from '../../base/clock.ts';
import { inputError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { serverFacts } from '../../bounds/model.ts';
import type { HttpModel, Wire } from '../../suite/model-config.ts';
import { isEssential, type RequestOption } from './request-options.ts';

/** Keeps which options servers have refused: the data folder, or the memory of this process. */
export interface RefusedOptionsStore {
  /** The rules of a server's model, and when each was learned. */
  read(key: string): ReadonlyMap<string, number>;
  /** `at`: epoch milliseconds. */
  add(key: string, rules: readonly string[], at: number): void;
}

/** The options that one model does not accept. */
export interface RefusedOptions {
  /** The rules for requests over a wire. */
  of(wire: Wire): readonly string[];
  /** Whether the option may be left out if the server refuses it. */
  mayLearn(option: RequestOption): boolean;
  learn(wire: Wire, rules: readonly string[]): void;
}

/** How long a server is believed that it does not accept an option: it may be updated. Milliseconds. */
const believedMs = 7 * 24 * 3_600_000;

/** Throws an input error if `without` of the configuration names what a request means. */
export function refusedOptions(
  name: string,
  config: HttpModel,
  { clock, refused: store = memoryStore(), note }: RefusedOptionsParts,
): RefusedOptions {
  const { without, translation } = config;
  const wrong = without.find(isEssential);
  if (wrong !== undefined) throw cannotBeLeftOut(name, wrong);
  const keyOf = (wire: Wire) => `${wire} ${serverKey(name, config)}`;
  const known = new Map<Wire, Map<string, number>>();
  const rulesOf = (wire: Wire): Map<string, number> => {
    const rules = known.get(wire) ?? new Map(attempt(() => store.read(keyOf(wire))));
    known.set(wire, rules);
    return rules;
  };
  const attempt = <Result>(act: () => Result): Result | undefined => {
    try {
      return act();
    } catch (error) {
      // Without the store, each process learns it again.
      note?.(`what the model ${name} does not accept is not kept: ${messageOf(error)}`);
      return undefined;
    }
  };
  return {
    of(wire) {
      const now = clock.now();
      const learned = [...rulesOf(wire)].filter(([, at]) => now - at < believedMs).map(([rule]) => rule);
      return [...without, ...learned];
    },
    // What the gateway adds is no loss of what was asked for.
    mayLearn: ({ path, meansSame }) =>
      translation === 'lenient' || path.startsWith('stream_options') || meansSame === true,
    learn(wire, all) {
      // A lower limit depends on the length of the conversation, so the next request asks for more again.
      const rules = all.filter((rule) => !rule.includes('<='));
      const learned = rulesOf(wire);
      for (const rule of rules) learned.set(rule, clock.now());
      for (const rule of [...learned.keys()].slice(0, -serverFacts.count.refusedOptions))
        learned.delete(rule);
      if (rules.length > 0) attempt(() => store.add(keyOf(wire), rules, clock.now()));
    },
  };
}

/** What has options of its own in each wire: an address, and a model there. */
export function serverKey(name: string, { baseUrl, model = name }: HttpModel): string {
  return `${baseUrl.replace(/\/+$/, '')} ${model}`;
}

export interface RefusedOptionsParts {
  clock: Clock;
  refused?: RefusedOptionsStore | undefined;
  note?: ((message: string) => void) | undefined;
}

function memoryStore(): RefusedOptionsStore {
  return { read: () => new Map(), add: () => undefined };
}

function cannotBeLeftOut(name: string, rule: string): OffsiteError {
  return inputError('MODEL_WITHOUT_INVALID', `the model ${name} has ${JSON.stringify(rule)} in without`, {
    hint: 'A request without it would ask for something else. Name only options, such as reasoning_effort.',
  });
}
