import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { Clock } from '../base/clock.ts';
import { isLoopback } from '../base/foreign-traffic.ts';
import { inputError } from '../base/offsite-error.ts';
import { Semaphore } from '../base/semaphore.ts';
import { modelAnswers } from '../bounds/model.ts';
import { openConnections } from '../client/connections.ts';
import {
  type HttpModel,
  type ModelConfig,
  mostParallel,
  type Wires,
  whereOf,
  wiresOf,
} from '../suite/model-config.ts';
import { duration } from '../text/quantities.ts';
import type { Upstream } from './answer.ts';
import type { ModelRole, SessionRequest } from './gateway.ts';
import type { GatewayOptions, GatewayParts } from './gateway-parts.ts';
import { type ModelLimit, ModelLimits } from './limits/model-limits.ts';
import { fittedUpstream } from './options/fitted-upstream.ts';
import { refusedOptions } from './options/refused-options.ts';
import { type Pacing, type PacingParts, pacing } from './pacing.ts';
import type { Recording } from './replay/cassette.ts';
import { GatewayRefusal } from './room.ts';
import { type Redaction, redactionOf } from './upstream-failure.ts';
import { httpUpstream } from './upstream-http.ts';

/** A configured model, ready for requests. */
export interface ServedModel extends AsyncDisposable {
  /** Its name in the configuration. */
  name: string;
  config: ModelConfig;
  wires: Wires;
  /** Its name in the upstream's API. */
  upstreamName: string;
  upstream: Upstream;
  pacing: Pacing;
  /** Set for a model that is reached over HTTP. */
  presence?: Presence | undefined;
  redaction: Redaction;
  /** Set if recorded answers come first. */
  recording?: Recording | undefined;
  /** With a recording: the model that answers other requests. */
  live?: ServedModel | undefined;
}

/** What the configuration has behind the name of a model. An address is a hash, since it may be private. */
export function behind({ config, upstreamName }: ServedModel): { id: string; at: string | undefined } {
  const hashOf = (of: string | Buffer) => hash('sha256', of).slice(0, 16);
  if ('baseUrl' in config) {
    const { origin, pathname } = new URL(config.baseUrl);
    const address = JSON.stringify([origin, pathname.replace(/\/+$/, ''), config.query]);
    return { id: upstreamName, at: hashOf(address) };
  }
  const file = whereOf(config);
  return { id: upstreamName, at: existsSync(file) ? hashOf(readFileSync(file)) : undefined };
}

/** A model that answers from a recording, and needs neither an address nor a key, unless it is `live` too. */
export function recordedModel(
  name: string,
  config: ModelConfig,
  recording: Recording,
  live: ServedModel | undefined,
  parts: GatewayParts,
): ServedModel {
  return {
    name,
    config,
    wires: wiresOf(config),
    upstreamName: name,
    recording,
    live,
    upstream: { send: () => Promise.reject(new Error('a recorded model is never asked itself')) },
    pacing: pacing(unlimited(), pacingParts(name, parts)),
    redaction: redactionOf(undefined),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

type ServingParts = Omit<GatewayParts, 'models' | 'network' | 'room' | 'limits'> &
  Pick<GatewayOptions, 'limits'>;

/** Throws an input error if its key is missing or cannot be sent in a header, or its address is invalid. */
export function serveModel(name: string, config: ModelConfig, parts: ServingParts): ServedModel {
  if ('scripted' in config) {
    return {
      name,
      config,
      wires: wiresOf(config),
      upstreamName: name,
      upstream: parts.scripted(config.scripted),
      pacing: pacing(unlimited(), pacingParts(name, parts)),
      redaction: redactionOf(undefined),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }
  if ('replay' in config) throw new Error('a replayed model belongs to a session');
  const key = keyOf(name, config, parts.env);
  const redaction = redactionOf(key);
  const connections = connectionsTo(name, config, parts);
  return {
    name,
    config,
    wires: config.wire,
    upstreamName: config.model ?? name,
    upstream: fittedUpstream(
      httpUpstream({ dispatcher: connections.kept, config, key, redaction }),
      refusedOptions(name, config, parts),
    ),
    pacing: pacingOf(name, config, parts),
    presence: new Presence(parts.clock, (message) => parts.note?.(`the model ${name}: ${message}`)),
    redaction,
    [Symbol.asyncDispose]: () => connections[Symbol.asyncDispose](),
  };
}

const unlimited = () => new Semaphore(Number.POSITIVE_INFINITY);

function pacingOf(name: string, config: HttpModel, parts: ServingParts): Pacing {
  const { maxParallel } = config;
  const paced = pacingParts(name, parts);
  if (maxParallel === undefined) return pacing(unlimited(), paced);
  const most = mostParallel(maxParallel);
  const permits = parts.permits?.(name, most);
  if (typeof maxParallel === 'number') return pacing(permits ?? new Semaphore(most), paced);
  return pacing(permits ?? unlimited(), { ...paced, limit: limitOf(name, config, parts) });
}

/** Reports waits for the model: they may be long, and nothing else reports them. */
function pacingParts(name: string, { clock, random, note }: ServingParts): PacingParts {
  const waits = (ms: number, why: string) =>
    note?.(`the model ${name} is asked again in ${duration(ms)}: ${why}`);
  return { clock, random, waits };
}

/** The limit of a model, if it adapts. */
export function limitOf(
  name: string,
  config: HttpModel,
  { clock, limits = new ModelLimits(clock) }: Pick<ServingParts, 'clock' | 'limits'>,
): ModelLimit | undefined {
  const { maxParallel } = config;
  return typeof maxParallel === 'object' ? limits.of(name, config, maxParallel.most) : undefined;
}

function keyOf(name: string, { apiKeyEnv }: HttpModel, env: NodeJS.ProcessEnv): string | undefined {
  if (apiKeyEnv === undefined) return undefined;
  const key = env[apiKeyEnv];
  if (!key) {
    throw inputError('MODEL_KEY_MISSING', `the model ${name} needs a key, and ${apiKeyEnv} is not set`, {
      hint: `Set ${apiKeyEnv}, or name another variable as apiKeyEnv of the model in offsite.yaml.`,
    });
  }
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw inputError(
      'MODEL_KEY_INVALID',
      `the key of the model ${name} in ${apiKeyEnv} has a character that a header cannot carry`,
      { hint: 'Check for a line break, a space or a copied "Bearer".' },
    );
  }
  return key;
}

/** Connects as the client of the Eval Service does: the same proxies, authorities and CA file. */
function connectionsTo(name: string, { baseUrl }: HttpModel, { env, caBundle }: ServingParts) {
  const url = new URL(baseUrl);
  if (url.username || url.password || url.search || url.hash) {
    throw inputError(
      'MODEL_URL_INVALID',
      `the baseUrl of the model ${name} carries a user, a query or a fragment`,
      { hint: 'Set the key with apiKeyEnv, and query parameters with query.' },
    );
  }
  const protocol = url.protocol === 'https:' ? 'https:' : 'http:';
  const address = { protocol, loopback: isLoopback(url.hostname) } as const;
  return openConnections(address, { caBundle, env }, modelAnswers.time.connect);
}

/** Milliseconds between two looks for a server that may be starting. */
const lookMs = 1_000;

/**
 * Whether the server of a model is there. A server on this machine that has never answered may be starting,
 * so its requests wait, once and for a short time; then it counts as absent until it answers. One that has
 * answered before is waited for like any model that is down.
 */
class Presence {
  readonly #clock: Clock;
  readonly #note: (message: string) => void;
  #hasAnswered = false;
  #missedSince: number | undefined;
  #isAbsent = false;
  #isUnreachable = false;

  constructor(clock: Clock, note: (message: string) => void) {
    this.#clock = clock;
    this.#note = note;
  }

  get isAbsent(): boolean {
    return this.#isAbsent;
  }

  /** Whether the last request could open no connection, in none of its tries. */
  get isUnreachable(): boolean {
    return this.#isUnreachable;
  }

  answered(): void {
    this.#hasAnswered = true;
    this.#isAbsent = false;
    this.#isUnreachable = false;
  }

  /** Called for a request without an answer. */
  unanswered(couldConnect: boolean): void {
    this.#isUnreachable = !couldConnect;
  }

  /**
   * How many milliseconds a request waits that found nobody: 0 if its model is absent. Undefined for a model
   * that has answered before.
   */
  missed(why: string): number | undefined {
    if (this.#hasAnswered) return undefined;
    const now = this.#clock.now();
    if (this.#missedSince === undefined) {
      this.#missedSince = now;
      this.#note(`${why}; waiting up to ${duration(modelAnswers.time.start)}, in case it is starting`);
    }
    this.#isAbsent ||= now - this.#missedSince >= modelAnswers.time.start;
    return this.#isAbsent ? 0 : lookMs;
  }
}

/** The models that each role of a session may use. */
export interface RoleModels {
  /** Finds a model by its exact name or alias. Throws a {@link GatewayRefusal} (404) for any other. */
  named(role: ModelRole, name: string): ServedModel;
  /** The default model of a role. Throws a {@link GatewayRefusal} if the role has none. */
  first(role: ModelRole): ServedModel;
  /** Names and aliases. */
  namesOf(role: ModelRole): string[];
  all(): ServedModel[];
}

export function roleModels(
  asked: SessionRequest['models'],
  served: (name: string) => ServedModel,
): RoleModels {
  const byRole = new Map<string, ServedModel[]>();
  for (const [role, names] of Object.entries(asked)) byRole.set(role, names.map(served));
  const namesOf = ({ name, config }: ServedModel) => [name, ...config.aliases];
  const of = (role: ModelRole) => byRole.get(role) ?? [];
  return {
    named(role, name) {
      const models = of(role);
      const model =
        models.find((one) => one.name === name) ?? models.find((one) => namesOf(one).includes(name));
      if (model) return model;
      const known = models.flatMap(namesOf).join(', ') || 'none';
      throw new GatewayRefusal(
        404,
        'MODEL_NOT_FOUND',
        `there is no model ${JSON.stringify(name.slice(0, 200))} for this trial; there is: ${known}`,
      );
    },
    first(role) {
      const [model] = of(role);
      if (model) return model;
      throw new GatewayRefusal(404, 'MODEL_NOT_FOUND', `this trial has no model for the role ${role}`);
    },
    namesOf: (role) => of(role).flatMap(namesOf),
    all: () => [...new Set([...byRole.values()].flat())],
  };
}
