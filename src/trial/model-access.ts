import type { GatewaySession } from '../gateway/gateway.ts';
import type { Relay } from '../gateway/relay/relay.ts';
import type { ModelAccess, Runner } from '../harness/runner.ts';
import { type Wire, type Wires, wiresOf } from '../suite/model-config.ts';
import type { TrialSpec } from './spec.ts';

/**
 * How the runner's harness reaches the variant's model. Undefined if the model is not configured, or if the
 * sandbox may not reach it.
 */
export function modelAccess(
  runner: Runner,
  { model, modelConfig, sandbox }: TrialSpec,
  relay: Relay | undefined,
  session: GatewaySession,
): ModelAccess | undefined {
  const mayAsk = relay !== undefined || (runner.wires === 'any' && sandbox.network !== 'none');
  if (!modelConfig || !mayAsk) return undefined;
  return {
    name: model,
    wire: sharedWire(runner, wiresOf(modelConfig)),
    origin: relay?.origin ?? '',
    token: session.token('agent'),
    contextWindow: modelConfig.contextWindow,
    maxOutputTokens: modelConfig.maxOutputTokens,
    chat: (request, signal) => session.chat('agent', request, signal),
  };
}

/**
 * Variables that send a program's traffic to the named hosts through the relay as its proxy. The relay itself
 * and the services of the case are reached without a proxy.
 */
export function reachThrough(relay: Relay, { sandbox, environment }: TrialSpec): Record<string, string> {
  return sandbox.network === 'allowlist' ? proxyVariables(relay.origin, environment) : {};
}

/** Variables that name a proxy for everything except loopback and the services of the case. */
export function proxyVariables(proxy: string, environment: TrialSpec['environment']): Record<string, string> {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'];
  const local = ['NO_PROXY', 'no_proxy'];
  const near = ['127.0.0.1', 'localhost', ...(environment.services ?? []).map(({ name }) => name)];
  return Object.fromEntries([
    ...names.map((name) => [name, proxy]),
    ...local.map((name) => [name, near.join(',')]),
  ]);
}

/**
 * The runner's first wire that the model also speaks. If there is none, the gateway translates the runner's
 * preferred wire. If the runner has no preference, the model's first wire.
 */
function sharedWire({ wires: known }: Runner, offered: Wires): Wire {
  const [first] = offered;
  if (known === 'any') return first;
  return known.find((wire) => offered.includes(wire)) ?? known[0] ?? first;
}
