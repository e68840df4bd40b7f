import type { Usage } from '../contract/report.ts';
import type { Budget, Wire } from '../suite/model-config.ts';
import type { ChatAnswer, ChatRequest } from './chat/chat.ts';
import type { RelayHandler } from './relay/relay.ts';

/** For whom a model works in a trial. */
export type ModelRole = 'agent' | 'user' | 'judge';

/**
 * All model traffic of this agent. One gateway serves all trials; its limits on each model hold over all of
 * them.
 */
export interface Gateway extends AsyncDisposable {
  open(request: SessionRequest): GatewaySession;
}

/** What one attempt of a trial may do. */
export interface SessionRequest {
  /** Names the trial in records and logs. */
  trial: string;
  /** Names of configured models. A role asks for its first one where it names none. */
  models: Partial<Record<ModelRole, readonly string[]>>;
  /** What agent and user may use together. */
  budget: Budget;
  /** What judges may use, counted apart; as much as `budget` where left out. */
  judgeBudget?: Budget | undefined;
  /** What the whole batch may use; the same object for all its trials. */
  batchBudget?: BudgetAccount | undefined;
  /**
   * Hosts that the sandbox may reach through the proxy: `registry.example`, `*.example:443`. None: no proxy.
   */
  hosts: readonly string[];
  /** Keeps a body whose model is configured with `record: full`; resolves with its sha256. */
  keep(body: Buffer): Promise<string>;
  /** Sees each exchange with a model as it ends, with what was asked. */
  observe?(exchange: ModelExchange, request: Buffer): void;
}

/** What has been used so far of a budget. */
export interface Spending {
  readonly limit: Budget;
  readonly spent: { tokens: number; usd: number; requests: number; startedAt: number };
}

/** A batch's budget: of agents and users together, and of judges once more. */
export interface BudgetAccount extends Spending {
  readonly judges: Spending;
}

export interface GatewaySession extends AsyncDisposable {
  /** The secret that a role shows in place of a key. It opens nothing but this session. */
  token(role: ModelRole): string;
  /**
   * Serves what comes over the relay: requests for a model, and those of a proxy's client for a host of the
   * allow-list.
   */
  readonly handler: RelayHandler;
  /** One answer of a model, asked for by this process: metered, limited and recorded like any other. */
  chat(role: ModelRole, request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
  /**
   * Answers every further request of the sandbox with the wire's own 400, which ends any harness at once.
   * `chat` still works.
   */
  close(reason: string): void;
  /** Aborts when the budget is spent; its reason is an {@link OffsiteError} of code `BUDGET_SPENT`. */
  readonly overBudget: AbortSignal;
  /** All requests so far. Waits until those in flight are metered. */
  account(): Promise<ModelAccount>;
}

/** What a session used. */
export interface ModelAccount {
  /** In the order they began. */
  exchanges: ModelExchange[];
  connections: HostConnection[];
  /** One entry for each role and model that was asked. */
  usage: RoleUsage[];
  /** Milliseconds with at least one request of the agent's in flight. */
  modelMs: number;
  /** The last failure of a model, unless the same role had a later success. */
  failure: string | undefined;
  /** What the agent's exchanges prove, whatever its sandbox says. */
  agent: Standing;
}

/** What the exchanges of a role, as they ended, say about who is at fault where the role fails. */
export interface Standing {
  /** Whether an answer of its model has reached it, so that it may have acted. */
  acted: boolean;
  /** The model's own failure, where the last request that was decided ended with one. */
  modelFailure: string | undefined;
}

export interface RoleUsage {
  role: ModelRole;
  model: string;
  /** The model as the upstream itself named it. */
  answeredBy: string | undefined;
  requests: number;
  /**
   * Input tokens are all of the prompt's, cached ones included. A number that some answer did not tell is
   * left out.
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
  /** What the sandbox was answered; undefined where the connection ended first. */
  status: number | undefined;
  /** Tries that failed before the one that was passed on. */
  failedTries: { at: number; reason: string }[];
  /** How it ended where that was not well: aborted by the client, cut by the upstream, refused by us. */
  trouble: string | undefined;
  usage: Usage;
  answeredBy: string | undefined;
  requestBytes: number;
  responseBytes: number;
  /** Blobs of the bodies, with `record: full`. */
  requestBody: string | undefined;
  responseBody: string | undefined;
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
  trouble: string | undefined;
}
