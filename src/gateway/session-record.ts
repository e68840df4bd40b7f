import type { Clock } from '../base/clock.ts';
import { hostConnections, modelRequests } from '../bounds/sandbox.ts';
import type { HostConnection } from '../record/model-account.ts';
import { isContextFull } from './chat/model-errors.ts';
import type { ModelExchange, ModelRole, Standing } from './gateway.ts';
import type { ModelError } from './wires/model-error.ts';

/** One request to a model in the record. */
export interface ExchangeEntry {
  exchange: ModelExchange;
  /**
   * `metered`: used tokens, reported or not. `free`: reached a model but used none, such as an error or a
   * count of tokens. `refused`: reached no model.
   */
  use: 'metered' | 'free' | 'refused';
  /** The date of the prices for its cost. */
  pricesOf: string | undefined;
}

/** Everything that happened in one session. */
export interface SessionRecord {
  readonly entries: readonly ExchangeEntry[];
  readonly connections: readonly HostConnection[];
  /** The last failure of each role's models, unless a success followed. */
  readonly failures: Map<ModelRole, { at: number; message: string }>;
  readonly standings: Standings;
  readonly inFlight: ReadonlySet<InFlight>;
  /**
   * Whether the record accepts no more exchanges of a role. Counted per role: the agent's requests must not
   * block those of its user and judges.
   */
  isFull(role: ModelRole): boolean;
  add(entry: ExchangeEntry): void;
  /** Adds a request that reached no model: it was refused, or needed none. */
  addUnsent(exchange: ModelExchange): void;
  addConnection(connection: HostConnection): void;
  begin(running: InFlight): void;
  end(running: InFlight): void;
}

/** A request or connection in flight. */
export interface InFlight {
  kind: 'exchange' | 'connection';
  /** Its sender. Closing the session ends requests of the sandbox, but not those of this process. */
  from: 'sandbox' | 'process';
  abort(reason: Error): void;
  /** Settles when it is over and in the record. Never rejects. */
  done: Promise<void>;
}

export function sessionRecord(): SessionRecord {
  const entries: ExchangeEntry[] = [];
  const connections: HostConnection[] = [];
  const inFlight = new Set<InFlight>();
  let refusals = 0;
  const exchanges = new Map<ModelRole, number>();
  const made = (role: ModelRole) => exchanges.get(role) ?? 0;
  return {
    entries,
    connections,
    failures: new Map(),
    standings: new Standings(),
    inFlight,
    isFull: (role) => made(role) > modelRequests.count.exchanges,
    add(entry) {
      const { role } = entry.exchange;
      exchanges.set(role, made(role) + 1);
      const { exchanges: most, refusals: mostRefused } = modelRequests.count;
      if (made(role) <= most + mostRefused) entries.push(entry);
    },
    addUnsent(exchange) {
      refusals += 1;
      if (refusals > modelRequests.count.refusals) return;
      entries.push({ exchange, use: 'refused', pricesOf: undefined });
    },
    addConnection(connection) {
      if (connections.length < hostConnections.count.recorded) connections.push(connection);
    },
    begin: (running) => void inFlight.add(running),
    end: (running) => void inFlight.delete(running),
  };
}

/** The `failure` of an exchange that has not ended. */
export const stillInFlight = 'still in flight';

/** Creates an exchange that begins now. */
export function newExchange(
  clock: Clock,
  request: Pick<ModelExchange, 'role' | 'model' | 'wire' | 'path' | 'streamed' | 'requestBytes'>,
): ModelExchange {
  const startedAt = clock.now();
  return {
    ...request,
    startedAt,
    firstByteAt: undefined,
    finishedAt: startedAt,
    status: undefined,
    failedTries: [],
    failure: stillInFlight,
    usage: {},
    answeredBy: undefined,
    responseBytes: 0,
    requestBody: undefined,
    responseBody: undefined,
  };
}

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
