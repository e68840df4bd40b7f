import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { abortable, startDeadline } from '../base/deadline.ts';
import { unionOf } from '../base/intervals.ts';
import { infrastructureError, type OffsiteError } from '../base/offsite-error.ts';
import { chatAnswers } from '../bounds/model.ts';
import { modelRequests } from '../bounds/sandbox.ts';
import { sumOfUsage } from '../record/usage.ts';
import { allowList } from '../suite/hosts/host-pattern.ts';
import { answerError, answerText } from './answer.ts';
import { holdRoleBudgets } from './budget.ts';
import { chatOver } from './chat/chat-over.ts';
import { exchange } from './exchange.ts';
import { answererOf, answerModels, type ForwardParts, forward } from './forward.ts';
import {
  type GatewaySession,
  issueTokens,
  type ModelAccount,
  type RoleUsage,
  type SessionRequest,
} from './gateway.ts';
import type { GatewayParts } from './gateway-parts.ts';
import { type ProxyParts, proxyRequest, proxyTunnel } from './hosts/proxy.ts';
import { answerLast } from './relay/relay.ts';
import { bytesForUpstream, readRequestBody } from './request-body.ts';
import { GatewayRefusal } from './room.ts';
import { routeOf } from './route.ts';
import { behind, type RoleModels, roleModels, type ServedModel } from './served-model.ts';
import {
  type ExchangeEntry,
  type InFlight,
  type SessionRecord,
  sessionRecord,
  stillInFlight,
} from './session-record.ts';
import { wireTable } from './wires/wire-table.ts';

/**
 * Opens the models of one attempt of a trial. Throws an input error for a model that is not configured or
 * cannot be used, or an invalid host pattern.
 */
export function openSession(
  request: SessionRequest,
  gateway: GatewayParts,
  served: (name: string) => ServedModel,
): GatewaySession {
  const { clock = gateway.clock } = request;
  const missed = new AbortController();
  const models = roleModels(request.models, served);
  let allowed = allowList(request.hosts);
  const budgets = holdRoleBudgets(request, clock);
  const record = sessionRecord();
  const tokens = issueTokens();
  const parts: ForwardParts & ProxyParts = {
    record,
    budgets,
    tokens,
    models,
    clock,
    allowed: { allows: (authority) => allowed.allows(authority) },
    random: gateway.random,
    network: gateway.network,
    missed: (miss) => missed.abort(miss),
    keep: request.keep,
    observe: request.observe,
    share: gateway.room.share(),
  };
  let closed: GatewayRefusal | undefined;
  // Run the sandbox's requests in the context of the trial that opened the session, whichever trial opened
  // the connection.
  const within = AsyncLocalStorage.snapshot();

  const end = async (which: (running: InFlight) => boolean, reason: Error) => {
    const ending = [...record.inFlight].filter(which);
    for (const running of ending) running.abort(reason);
    await Promise.all(ending.map(({ done }) => done));
  };
  const close = (reason: string) => {
    closed ??= new GatewayRefusal(400, 'SESSION_CLOSED', reason);
    return end(({ from }) => from === 'sandbox', closed);
  };

  return {
    token: (role) => tokens.of(role),
    handler: {
      request: (request, response) => within(answer, parts, closed, request, response),
      connect: (request, client, first) =>
        within(() =>
          closed
            ? answerLast(client, closed.status, closed.message)
            : proxyTunnel(parts, request, client, first),
        ),
    },
    async chat(role, chat, signal) {
      const model = chat.model === undefined ? models.first(role) : models.named(role, chat.model);
      const [wire] = model.wires;
      using ended = new DisposableStack();
      // The harness has a deadline of its own.
      const until =
        role === 'agent'
          ? undefined
          : ended.use(startDeadline(clock, chatAnswers.time.answer, signal, () => unanswered(model.name)));
      const over = new AbortController();
      // Ends an answer that is not read completely, so that it does not stay in flight.
      ended.defer(() => over.abort(new Error('the chat is over')));
      return await chatOver(
        (ask, asking) => {
          const inPath = wireTable[wire].targetOf && { model: model.name, streamed: false };
          const read = readRequestBody(ask.body, wire, inPath);
          const answerer = answererOf(parts, model, { role, wire, body: read, purpose: 'answer' });
          const body = bytesForUpstream(read, wire, model.upstreamName);
          const how = { from: 'process', role, model: answerer, purpose: 'answer', streamed: false } as const;
          const path = wireTable[wire].translation.path(model.upstreamName, false);
          const sent = { ...ask, body, path };
          const held = { hold: parts.share.hold(), weight: read.weight };
          return exchange(
            parts,
            { ...how, ...held, request: sent, received: ask.body },
            AbortSignal.any([asking, over.signal]),
          );
        },
        { wire, model: model.name },
        chat,
        until?.signal ?? signal,
      );
    },
    async reachOnly(hosts) {
      allowed = allowList(hosts);
      await end(
        ({ kind }) => kind === 'connection',
        new GatewayRefusal(403, 'HOST_NOT_ALLOWED', 'what this sandbox may reach has changed'),
      );
    },
    close: (reason) => void close(reason),
    overBudget: budgets.spent,
    left: () => budgets.of('agent').left(),
    replayMissed: missed.signal,
    async account() {
      using limit = startDeadline(
        clock,
        modelRequests.time.account,
        [],
        () => new Error('the account does not wait any longer'),
      );
      const asking = [...record.inFlight].filter(({ kind }) => kind === 'exchange');
      // Rejects only on timeout; requests still in flight then count as they are.
      await abortable(Promise.all(asking.map(({ done }) => done)), limit.signal).catch(() => undefined);
      return accountOf(record, clock.now(), models);
    },
    async [Symbol.asyncDispose]() {
      budgets[Symbol.dispose]();
      await close('the trial is over');
      await end(() => true, infrastructureError('SESSION_CLOSED', 'the trial is over'));
    },
  };
}

function unanswered(model: string): OffsiteError {
  const seconds = chatAnswers.time.answer / 1000;
  return infrastructureError('MODEL_UNREACHABLE', `the model ${model} gave no answer within ${seconds} s`);
}

async function answer(
  parts: ForwardParts & ProxyParts,
  closed: GatewayRefusal | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const route = routeOf(request);
  if (route.to === 'proxy') {
    if (closed) answerText(response, closed);
    else await proxyRequest(parts, route, request, response);
    return;
  }
  if (route.to === 'greeting') {
    response.writeHead(200).end();
    return;
  }
  try {
    if (closed) throw closed;
    if (route.to === 'nothing') throw new GatewayRefusal(route.status, 'UNKNOWN_URL', route.why);
    if (route.to === 'model') await forward(parts, route, request, response);
    else answerModels(parts, route, request, response);
  } catch (error) {
    answerError(response, route.wire, error);
  }
}

/** Sums up a record. A request that is still in flight counts as a request without usage. */
function accountOf(record: SessionRecord, now: number, models: RoleModels): ModelAccount {
  const { entries, connections, failures, standings } = record;
  const asked = entries.filter(({ use }) => use !== 'refused');
  const byModel = Map.groupBy(asked, ({ exchange }) => `${exchange.role} ${exchange.model}`);
  const shown = ({ exchange }: ExchangeEntry) => ({
    ...structuredClone(exchange),
    ...(exchange.failure === stillInFlight && { finishedAt: now }),
  });
  return {
    exchanges: entries.map(shown),
    connections: structuredClone([...connections]),
    usage: [...byModel.values()].flatMap((ofModel) => roleUsage(ofModel, models)),
    modelMs: unionOf(asked.map(shown).filter(({ role }) => role === 'agent')),
    failure: [...failures.values()].toSorted((a, b) => a.at - b.at).at(-1)?.message,
    agent: { ...standings.of('agent') },
  };
}

function roleUsage(entries: readonly ExchangeEntry[], models: RoleModels): RoleUsage[] {
  const [first] = entries;
  if (!first) return [];
  const { role, model } = first.exchange;
  const served = models.all().find(({ name }) => name === model);
  const replayed = entries.filter(({ exchange }) => exchange.replayed).length;
  const metered = entries.filter(({ use }) => use === 'metered');
  // Without an answer the usage is unknown.
  const usage = metered.length === 0 ? {} : sumOfUsage(metered.map(({ exchange }) => exchange.usage));
  return [
    {
      role,
      model,
      answeredBy: entries.findLast(({ exchange }) => exchange.answeredBy)?.exchange.answeredBy,
      requests: entries.length,
      ...(replayed > 0 ? { replayed } : served && { behind: behind(served) }),
      usage,
      pricesOf: usage.costUsd === undefined ? undefined : metered.at(-1)?.pricesOf,
    },
  ];
}
