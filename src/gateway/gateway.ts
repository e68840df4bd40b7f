import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../base/clock.ts';
import type { Usage } from '../contract/report.ts';
import type { ReplayedExchange } from '../record/model-account.ts';
import type { Budget, Wire } from '../suite/model-config.ts';
import type { ChatAnswer, ChatRequest } from './chat/chat.ts';
import type { ModelLimit } from './limits/model-limits.ts';
import type { RelayHandler } from './relay/relay.ts';
import type { Cassette, TrialLabel } from './replay/cassette.ts';
import type { Loss } from './translation/losses.ts';
import { allWires } from './wires/wire-table.ts';

/** The role of a model in a trial. */
export type ModelRole = 'agent' | 'user' | 'judge';

/** All model traffic of this process. One gateway serves all trials, which share its limits on each model. */
export interface Gateway extends AsyncDisposable {
  open(request: SessionRequest): GatewaySession;
  /** The limit of a configured model, if it adapts. */
  limitOf(model: string): ModelLimit | undefined;
  /** Whether one of these models is on this machine, and nothing listens there, also after a short wait. */
  isAbsent(models: readonly string[]): boolean;
  /** The limits that adapt, of the models that have been asked. */
  limits(): readonly ModelLimit[];
}

/** What one attempt of a trial may do. */
export interface SessionRequest {
  /** Names the trial in records and logs. */
  trial: string;
  /** The clock of the record's times. Default: the gateway's. */
  clock?: Clock | undefined;
  /** Names of configured models. A request without a model name uses the role's first one. */
  models: Partial<Record<ModelRole, readonly string[]>>;
  /** What agent and user may use in total. */
  budget: Budget;
  /** What judges may use, counted separately; default: as much as `budget`. */
  judgeBudget?: Budget | undefined;
  /** What the whole batch may use; the same object for all its trials. */
  batchBudget?: BudgetAccount | undefined;
  /**
   * Hosts that the sandbox may reach through the proxy: `registry.example`, `*.example:443`. If empty, there
   * is no proxy.
   */
  hosts: readonly string[];
  /** Stores a body of a model with `record: full`; resolves with its sha256. */
  keep(body: Buffer): Promise<string>;
  /** Identifies the trial in its suite, for models that are replayed. */
  label?: TrialLabel | undefined;
  /** Answers the requests to all models from a recording. */
  replay?: SessionReplay | undefined;
  /** Receives each exchange with a model when it ends, with the request's body. */
  observe?(exchange: ModelExchange, request: Buffer): void;
}

export interface SessionReplay {
  cassette: Cassette;
  /**
   * Which requests the configured models answer. `never`: none; a request that is not recorded is refused.
   * `missing`: those that are not recorded. `at-end`: those that are not recorded, once all recorded answers
   * of their role were given; until then they are refused.
   */
  live: 'never' | 'missing' | 'at-end';
  /** Which recorded models answer: `same`, those of the same name, or any. */
  of: 'same' | 'any';
  /**
   * The recorded answers of the agent are given in their order, with their commands as calls of the shell
   * tool of another harness. The configured models answer all other requests. The cassette has one trial.
   */
  inOrder?: boolean | undefined;
}

/** How much of a budget has been used so far. */
export interface Spending {
  readonly limit: Budget;
  readonly spent: { tokens: number; usd: number; requests: number; startedAt: number };
}

/** A batch's budget: one account for agents and users, and one for judges. */
export interface BudgetAccount extends Spending {
  readonly judges: Spending;
}

export interface GatewaySession extends AsyncDisposable {
  /** The secret that a role sends instead of a key. It works only in this session. */
  token(role: ModelRole): string;
  /** Serves the relay's requests: those for a model, and proxy requests for a host of the allow-list. */
  readonly handler: RelayHandler;
  /** From now on these are the hosts that the sandbox may reach. Ends its connections to all hosts. */
  reachOnly(hosts: readonly string[]): Promise<void>;
  /** Requests one answer of a model for this process: metered, limited and recorded like any other. */
  chat(role: ModelRole, request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
  /**
   * From now on answers every request of the sandbox with the wire's own 400, which ends any harness at once.
   * `chat` still works.
   */
  close(reason: string): void;
  /** Aborts when the budget is spent; its reason is an {@link OffsiteError} of code `BUDGET_SPENT`. */
  readonly overBudget: AbortSignal;
  /** What the agent and the user may still use. Others may use up what is left of the batch's budget. */
  left(): BudgetLeft;
  /**
   * Aborts when a replayed model has no answer; its reason is an {@link OffsiteError} that says what differs.
   */
  readonly replayMissed: AbortSignal;
  /** The account of all requests so far. Waits until those in flight are metered. */
  account(): Promise<ModelAccount>;
}

/** What is left of budgets; what is not limited is left out. Never negative. */
export interface BudgetLeft {
  tokens?: number | undefined;
  usd?: number | undefined;
  requests?: number | undefined;
  /** When the time of a budget is over, epoch milliseconds. */
  until?: number | undefined;
}

/** What a session used. */
export interface ModelAccount {
  /** In the order they began. */
  exchanges: ModelExchange[];
  connections: HostConnection[];
  /** One entry for each role and model that was used. */
  usage: RoleUsage[];
  /** Milliseconds with at least one request of the agent's in flight. */
  modelMs: number;
  /** The last failure of a model, unless the same role had a later success. */
  failure: string | undefined;
  /** What the agent's exchanges prove, whatever the sandbox reports. */
  agent: Standing;
}

/** Who is at fault if a role fails, according to how its exchanges ended. */
export interface Standing {
  /** Whether the role received an answer of its model, so it may have acted. */
  acted: boolean;
  /** The model's failure, if the last decided request ended with one. */
  modelFailure: string | undefined;
  /** How the last decided request failed, in the server's own words, whoever is at fault. */
  lastFailure?: string | undefined;
}

export interface RoleUsage {
  role: ModelRole;
  model: string;
  /** The model's name in the upstream's answer. */
  answeredBy: string | undefined;
  requests: number;
  /** How many of these requests got a recorded answer. Absent if none did. */
  replayed?: number | undefined;
  /** What stood behind the name in the configuration. Absent if there were recorded answers. */
  behind?: { id: string; at: string | undefined } | undefined;
  /**
   * Input tokens are all tokens of the prompt, including cached ones. A number is left out if any answer did
   * not report it.
   */
  usage: Usage;
  /** The date of the prices behind `usage.costUsd`. */
  pricesOf: string | undefined;
}

/** One request to a model, and how it went. */
export interface ModelExchange {
  role: ModelRole;
  model: string;
  wire: Wire;
  path: string;
  streamed: boolean;
  /** Epoch milliseconds. */
  startedAt: number;
  firstByteAt: number | undefined;
  finishedAt: number;
  /** The status that the sandbox received; undefined if the connection ended first. */
  status: number | undefined;
  /** Attempts that failed before the one that was passed on. */
  failedTries: { at: number; reason: string }[];
  /** Why it did not succeed: aborted by the client, cut by the upstream, refused by the gateway. */
  failure: string | undefined;
  usage: Usage;
  answeredBy: string | undefined;
  requestBytes: number;
  responseBytes: number;
  /** Blobs of the bodies, with `record: full`. */
  requestBody: string | undefined;
  responseBody: string | undefined;
  /** What the model's server does not accept, so that it was left out of the request. */
  losses?: Loss[] | undefined;
  /** Set if the script of the model has no turn for the conversation that begins here. */
  unscripted?: true | undefined;
  /**
   * Set if the client spoke another wire. Everything else here is what the model received and returned, in
   * the model's wire.
   */
  translation?: ExchangeTranslation | undefined;
  /** Set if no model was asked. */
  replayed?: ReplayedExchange | undefined;
}

export interface ExchangeTranslation {
  /** The client's wire. */
  from: Wire;
  /** What the model's or the client's wire cannot carry. */
  losses: Loss[];
  /** Whether a count of tokens is an estimate: the model's wire or server does not count. */
  estimated?: true;
}

/** One connection through the allow-list's proxy. */
export interface HostConnection {
  host: string;
  port: number;
  startedAt: number;
  finishedAt: number;
  sentBytes: number;
  receivedBytes: number;
  /** Why it was refused or failed. */
  failure: string | undefined;
}

/** The secrets of one session, one per role. */
export interface Tokens {
  of(role: ModelRole): string;
  /** The role whose token a request carries; undefined if it carries no token of this session. */
  roleOf(headers: IncomingHttpHeaders): ModelRole | undefined;
}

/** Headers besides `authorization` that may carry a key; `api-key` is Azure's. */
const keyHeaders = ['api-key', ...allWires.map(({ auth }) => auth).filter((name) => name !== 'bearer')];

const roles: readonly ModelRole[] = ['agent', 'user', 'judge'];

export function issueTokens(): Tokens {
  const issued = roles.map((role) => {
    const token = `offsite_${randomBytes(32).toString('base64url')}`;
    return { role, token, bytes: Buffer.from(token) };
  });
  return {
    of(role) {
      const own = issued.find((one) => one.role === role);
      if (!own) throw new RangeError(`there is no role ${role}`);
      return own.token;
    },
    roleOf(headers) {
      const shown = credentialsIn(headers).map((credential) => Buffer.from(credential));
      // All tokens have one length. Timing does not reveal how much of a token was correct.
      const isSame = (one: Buffer, other: Buffer) =>
        one.length === other.length && timingSafeEqual(one, other);
      return issued.find(({ bytes }) => shown.some((one) => isSame(one, bytes)))?.role;
    },
  };
}

/** All credentials in the headers where clients put keys; some clients send two. */
function credentialsIn(headers: IncomingHttpHeaders): string[] {
  const bearer = /^bearer +(\S+)$/i.exec(headers.authorization?.trim() ?? '')?.[1];
  return [bearer, ...keyHeaders.map((name) => headers[name])].flat().filter((one) => one !== undefined);
}
