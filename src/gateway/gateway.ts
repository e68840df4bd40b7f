import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../base/clock.ts';
import type {
  ModelAccount as RecordedAccount,
  ModelExchange as RecordedExchange,
} from '../record/model-account.ts';
import type { Budget, Wire } from '../suite/model-config.ts';
import type { ChatAnswer, ChatRequest } from './chat/chat.ts';
import type { ModelLimit } from './limits/model-limits.ts';
import type { RelayHandler } from './relay/relay.ts';
import type { Cassette, TrialLabel } from './replay/cassette.ts';
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
  /** Whether the last request to a model could open no connection, in none of its tries. */
  isUnreachable(model: string): boolean;
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
  /** `isPartial`: something was used whose price is not known. */
  readonly spent: { tokens: number; usd: number; requests: number; startedAt: number; isPartial?: true };
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

/**
 * One request to a model, and how it went. If it was translated, all but `translation` is what the model got
 * and gave.
 */
export interface ModelExchange extends RecordedExchange {
  wire: Wire;
}

/** What a session used: the form in which it is recorded. */
export interface ModelAccount extends RecordedAccount {
  exchanges: ModelExchange[];
}

/** One entry for each role and model that was used. */
export type RoleUsage = ModelAccount['usage'][number];

/** Who is at fault if a role fails, according to how its exchanges ended. */
export type Standing = ModelAccount['agent'];

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
