import { modelRequests } from '../../bounds/sandbox.ts';
import { GatewayRefusal } from '../room.ts';
import { isNothing, type JsonObject, words } from '../wires/lenient.ts';

/** The kinds of losses, by which losses are counted over trials. */
export const lossKinds = [
  'sampling',
  'caching',
  'reasoning',
  'tool option',
  'tool result status',
  'structured output option',
  'metadata',
  'service option',
  'message option',
  'answer detail',
  'order',
  'refused by the server',
] as const;
export type LossKind = (typeof lossKinds)[number];

/** Something that a translation left out. */
export interface Loss {
  /** Where it was, without indexes: `messages[].content[].cache_control`. */
  path: string;
  kind: LossKind;
  /** How often in this exchange. */
  times: number;
}

/** Kinds of members that have the same meaning wherever they are. */
const kindsOfNames: Partial<Record<LossKind, ReadonlySet<string>>> = {
  caching: words('cache_control cache_prompt prompt_cache_key prompt_cache_retention'),
  metadata: words('metadata client_metadata user safety_identifier labels'),
  reasoning: words('reasoning thinking include_reasoning'),
};

/** A model's setting `translation`: with `strict`, a loss in a request is refused. */
export type TranslationMode = 'strict' | 'lenient';

/** Collects what the translation of one exchange leaves out. */
export class Losses {
  readonly #found = new Map<string, Loss>();
  readonly #mode: TranslationMode | 'partial';
  readonly #model: string;
  #times = 0;

  /** @param mode `partial`: what the neutral form cannot say is left out, where {@link each} reads it */
  constructor(mode: TranslationMode | 'partial', model: string) {
    this.#mode = mode;
    this.#model = model;
  }

  /**
   * Leaves out something that does not change the meaning. With `strict`, throws a {@link GatewayRefusal}.
   */
  drop(path: string, kind: LossKind): void {
    if (this.#mode === 'strict') throw this.#refusal(path, 'and its translation is strict');
    this.record(path, kind);
  }

  /** How often something was recorded. */
  get times(): number {
    return this.#times;
  }

  /** Records a loss of an answer: it has arrived, so it cannot be refused any more. */
  record(path: string, kind: LossKind): void {
    this.#times += 1;
    const known = this.#found.get(path);
    if (known) known.times += 1;
    else if (this.#found.size < modelRequests.count.losses) this.#found.set(path, { path, kind, times: 1 });
  }

  /** Throws a {@link GatewayRefusal}: without this, the request would mean something else. */
  refuse(path: string): never {
    throw this.#refusal(path, 'and it cannot be left out');
  }

  /** Leaves out all members of an object that are not in `known`. Empty members are no loss. */
  rest(object: JsonObject, at: string, known: ReadonlySet<string>, kind: LossKind): void {
    for (const [name, value] of Object.entries(object)) {
      if (known.has(name) || isNothing(value)) continue;
      const shown = name.slice(0, 100);
      const ownKind = lossKinds.find((one) => kindsOfNames[one]?.has(name));
      this.drop(at === '' ? shown : `${at}.${shown}`, ownKind ?? kind);
    }
  }

  /** Reads each item. */
  each<Item, Read>(items: readonly Item[], read: (item: Item) => Read | readonly Read[]): Read[] {
    if (this.#mode !== 'partial') return items.flatMap(read);
    return items.flatMap((item) => {
      try {
        return read(item);
      } catch (error) {
        if (error instanceof GatewayRefusal) return [];
        throw error;
      }
    });
  }

  all(): Loss[] {
    return [...this.#found.values()];
  }

  #refusal(path: string, why: string): GatewayRefusal {
    return new GatewayRefusal(
      400,
      'NOT_TRANSLATABLE',
      `the model ${this.#model} cannot be asked for ${JSON.stringify(path)} over its wire, ${why}`,
      {
        hint: 'Use a harness that speaks a wire of the model; docs/reference/model-traffic.md says what is carried.',
      },
    );
  }
}
