import { infrastructureError } from '../../base/offsite-error.ts';
import type { Engine } from '../../engine/engine.ts';
import type { GatewaySession } from '../../gateway/gateway.ts';
import { answerLast, type Relay, type RelayHandler } from '../../gateway/relay/relay.ts';
import type { SidecarRequest } from '../../gateway/relay/sidecar.ts';
import { startRelay } from '../../gateway/relay/start-relay.ts';
import { clientVariables } from '../../gateway/wires/wire-table.ts';
import type { ModelAccess, Runner } from '../../harness/runner.ts';
import { type Wire, type Wires, wiresOf } from '../../suite/model-config.ts';
import type { TrialSpec } from '../spec.ts';

/** The image of every relay. It has the Node that a relay needs, which a sandbox's own image may not have. */
export const relayImage = 'offsite/base';

/**
 * A sandbox's way out to models and named hosts. It is made with the sandbox and answers 503 while no harness
 * runs.
 */
export interface ModelPort extends AsyncDisposable {
  relay: Relay;
  /** Sends all requests from now on to `handler`; if it is undefined, they are answered with 503. */
  routeTo(handler: RelayHandler | undefined): void;
}

/**
 * Whether anything in a trial's sandbox is to reach something through the gateway. A harness of this process
 * asks its model without one.
 */
export function needsPort(
  { harness, modelConfig, sandbox, testsHosts = [], steps }: TrialSpec,
  runners: readonly Runner[],
): boolean {
  const hosts = [...testsHosts, ...(steps?.list ?? []).flatMap((step) => step.testsHosts ?? [])];
  if (hosts.length > 0) return true;
  if (sandbox.network === 'none') return false;
  if (sandbox.network === 'allowlist' && sandbox.hosts.length > 0) return true;
  const runsHere = runners.some(({ name, wires }) => name === harness && wires === 'any');
  return modelConfig !== undefined && !runsHere;
}

/** The id of the image that relays run in. Throws `IMAGE_MISSING`. */
export async function relayImageOf(engine: Engine, signal: AbortSignal): Promise<string> {
  const image = await engine.findImage(relayImage, signal);
  if (image) return image.id;
  throw infrastructureError('IMAGE_MISSING', `the engine has no image ${relayImage}, which relays run in`, {
    hint: 'Build it: offsite engine base-image',
  });
}

/** Starts a sandbox's relay. `relay.ready` resolves when it listens. */
export function openPort(
  engine: Engine,
  request: Omit<SidecarRequest, 'handler'>,
  signal: AbortSignal,
): ModelPort {
  let handler: RelayHandler | undefined;
  // A request that comes while no harness runs is not from the harness.
  const first: RelayHandler = {
    request(request, response) {
      return handler ? handler.request(request, response) : response.writeHead(503).end();
    },
    connect(request, client, early) {
      if (handler) return handler.connect(request, client, early);
      return answerLast(client, 503, 'No harness runs.');
    },
  };
  const relay = startRelay(engine, { ...request, handler: first }, signal);
  return {
    relay,
    routeTo(next) {
      handler = next;
    },
    [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose](),
  };
}

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
  const origin = relay?.origin ?? '';
  const token = session.token('agent');
  return {
    name: model,
    wire: sharedWire(runner, wiresOf(modelConfig)),
    origin,
    token,
    variables: clientVariables(origin, token),
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
