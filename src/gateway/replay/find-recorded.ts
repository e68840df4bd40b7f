import type { CanonicalRequest } from './canonical-request.ts';
import {
  type Cassette,
  keysOf,
  type RecordedExchange,
  type RecordedTrial,
  type RequestKeys,
  type Role,
  steadyParts,
  type TrialLabel,
  trialName,
} from './cassette.ts';

/**
 * How a request matched a recorded one. `exact`: all of it. `known`: all but volatile shapes, such as dates.
 * `conversation`: what was said, called and returned; the harness's own texts, its tools or its options
 * differ.
 */
export type MatchKind = 'exact' | 'known' | 'conversation';

export interface Match {
  exchange: RecordedExchange;
  trial: RecordedTrial;
  how: MatchKind;
  /** Whether the recorded answer was given before: the request came more often than it was recorded. */
  again: boolean;
  /** With `conversation`: the parts in which the requests differ. */
  differs: DifferentPart[];
}

const parts = ['context', 'tools', 'options'] as const;
type DifferentPart = (typeof parts)[number];

interface Sought {
  role: Role;
  /** Whether exchanges with a model may answer. */
  isOf(model: string): boolean;
  /** The name that the harness has for its model. */
  model: string;
  /** The request in the forms in which it may be recorded, the likeliest first. */
  forms: readonly CanonicalRequest[];
}

interface Indexed {
  exchange: RecordedExchange;
  keys: RequestKeys;
}

const indexes = new WeakMap<RecordedTrial, Map<string, Indexed[]>>();

/**
 * Finds the answers of one session. Which answer a request gets depends only on the session's earlier
 * requests, not on other trials that run concurrently.
 */
export class RecordedFinder {
  readonly #trials: readonly RecordedTrial[];
  readonly #own: RecordedTrial | undefined;
  readonly #given = new Set<RecordedExchange>();

  constructor(cassette: Cassette, label: TrialLabel | undefined) {
    const [own, ...others] = ranked(cassette.trials, label);
    this.#own = own && label && trialName(own.label) === trialName(label) ? own : undefined;
    this.#trials = own ? [own, ...others] : [];
  }

  /** All trials, the session's own one first. */
  get trials(): readonly RecordedTrial[] {
    return this.#trials;
  }

  find(sought: Sought): Match | undefined {
    const asked = sought.forms.map((form) => keysOf(form, sought.role, sought.model));
    const own = this.#own;
    if (own) {
      const found =
        this.#inTrial(own, sought, asked, 'known') ?? this.#inTrial(own, sought, asked, 'conversation');
      if (found) return found;
    }
    for (const key of ['known', 'conversation'] as const) {
      for (const trial of this.#trials) {
        const found = trial === own ? undefined : this.#inTrial(trial, sought, asked, key);
        if (found) return found;
      }
    }
    return undefined;
  }

  /** Whether each recorded exchange of a role was given as an answer. */
  isPlayed(role: Role): boolean {
    return this.#trials.every((trial) =>
      trial.exchanges().every((exchange) => exchange.role !== role || this.#given.has(exchange)),
    );
  }

  #inTrial(
    trial: RecordedTrial,
    { role, isOf, forms, model }: Sought,
    asked: readonly RequestKeys[],
    key: 'known' | 'conversation',
  ): Match | undefined {
    for (const [place, keys] of asked.entries()) {
      const form = forms[place];
      const all = (indexOf(trial).get(`${key} ${role} ${keys[key]}`) ?? []).filter(({ exchange }) =>
        isOf(exchange.model),
      );
      if (all.length === 0 || !form) continue;
      const nearest = key === 'known' ? all : nearestOf(all, form);
      const exact = nearest.filter((one) => one.keys.exact === keys.exact);
      const first = [...exact, ...nearest].find(({ exchange }) => !this.#given.has(exchange));
      const chosen = first ?? exact.at(-1) ?? nearest.at(-1);
      if (!chosen) continue;
      this.#given.add(chosen.exchange);
      const how = exact.includes(chosen) ? 'exact' : key;
      const { exchange } = chosen;
      const differs = how === 'conversation' ? differentParts(form, model, exchange) : [];
      return { exchange, trial, how, again: first === undefined, differs };
    }
    return undefined;
  }
}

/** What differs between a request and a recorded one with the same conversation. */
function differentParts(
  form: CanonicalRequest,
  model: string,
  { request, model: recorded }: RecordedExchange,
): DifferentPart[] {
  const now = steadyParts(form, model);
  const then = steadyParts(request, recorded);
  return parts.filter((part) => JSON.stringify(now[part]) !== JSON.stringify(then[part]));
}

function indexOf(trial: RecordedTrial): Map<string, Indexed[]> {
  const known = indexes.get(trial);
  if (known) return known;
  const index = new Map<string, Indexed[]>();
  for (const exchange of trial.exchanges()) {
    const keys = keysOf(exchange.request, exchange.role, exchange.model);
    for (const key of ['known', 'conversation'] as const) {
      const name = `${key} ${exchange.role} ${keys[key]}`;
      index.set(name, [...(index.get(name) ?? []), { exchange, keys }]);
    }
  }
  indexes.set(trial, index);
  return index;
}

/** Those that share the most tools and lines of context with a request. */
function nearestOf(all: readonly Indexed[], form: CanonicalRequest): Indexed[] {
  const marks = marksOf(form);
  const scored = all.map((one) => {
    const there = marksOf(one.exchange.request);
    return { one, score: marks.intersection(there).size / Math.max(1, marks.union(there).size) };
  });
  const best = Math.max(...scored.map(({ score }) => score));
  return scored.filter(({ score }) => score === best).map(({ one }) => one);
}

function marksOf({ tools, context }: CanonicalRequest): Set<string> {
  return new Set([
    ...tools.map(({ name }) => `tool ${name}`),
    ...context.flatMap((text) => text.split('\n')),
  ]);
}

/**
 * The trials, the most similar first: the same trial, then the same run, then the same case. Each ordinal
 * begins with another trial of a group, so that not all of them get the answers of the first.
 */
function ranked(trials: readonly RecordedTrial[], label: TrialLabel | undefined): RecordedTrial[] {
  if (!label) return [...trials];
  const groups = [
    (one: TrialLabel) => trialName(one) === trialName(label),
    (one: TrialLabel) => one.case === label.case && one.variant === label.variant,
    (one: TrialLabel) => one.case === label.case,
    () => true,
  ];
  const placed = new Set<RecordedTrial>();
  return groups.flatMap((fits) => {
    const group = trials.filter((trial) => !placed.has(trial) && fits(trial.label));
    for (const trial of group) placed.add(trial);
    const from = group.length === 0 ? 0 : label.ordinal % group.length;
    return [...group.slice(from), ...group.slice(0, from)];
  });
}
