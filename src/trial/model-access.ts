import type { GatewaySession } from '../gateway/gateway.ts';
import type { Relay } from '../gateway/relay/relay.ts';
import type { ModelAccess, Runner } from '../harness/runner.ts';
import { type Wire, wires } from '../suite/model-config.ts';
import { TrialFailure } from './failure.ts';
import type { TrialSpec } from './spec.ts';

/** The variant's model as the runner's harness reaches it; undefined where it is not configured. */
export function modelAccess(
  runner: Runner,
  { model, modelConfig }: TrialSpec,
  relay: Relay,
  session: GatewaySession,
): ModelAccess | undefined {
  if (!modelConfig) return undefined;
  const spoken = 'scripted' in modelConfig ? wires : modelConfig.wire;
  return {
    name: model,
    wire: sharedWire(runner, spoken),
    origin: relay.origin,
    token: session.token('agent'),
    contextWindow: modelConfig.contextWindow,
    maxOutputTokens: modelConfig.maxOutputTokens,
    chat: (request, signal) => session.chat('agent', request, signal),
  };
}

/** What sends a program to the named hosts: the relay as its proxy, and no proxy for the relay itself. */
export function reachThrough(relay: Relay, { sandbox }: TrialSpec): Record<string, string> {
  if (sandbox.network !== 'allowlist') return {};
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'];
  const local = ['NO_PROXY', 'no_proxy'];
  return Object.fromEntries([
    ...names.map((name) => [name, relay.origin]),
    ...local.map((name) => [name, '127.0.0.1,localhost']),
  ]);
}

/**
 * The first of the runner's wires that the model speaks; of a runner that leaves the choice, the model's
 * first.
 */
function sharedWire({ name, wires: known }: Runner, spoken: readonly Wire[]): Wire {
  const shared =
    known === 'any' || known.length === 0 ? spoken[0] : known.find((wire) => spoken.includes(wire));
  if (shared) return shared;
  throw new TrialFailure({
    kind: 'task',
    phase: 'harness',
    message: `the ${name} harness speaks none of its model's wires (${spoken.join(', ')})`,
  });
}
