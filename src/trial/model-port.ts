import { OffsiteError } from '../base/offsite-error.ts';
import type { Engine } from '../engine/engine.ts';
import { plainAnswer } from '../gateway/relay/plain-answer.ts';
import type { Relay, RelayHandler } from '../gateway/relay/relay.ts';
import type { SidecarRequest } from '../gateway/relay/sidecar.ts';
import { startRelay } from '../gateway/relay/start-relay.ts';
import type { Runner } from '../harness/runner.ts';
import type { TrialSpec } from './spec.ts';

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
  throw new OffsiteError(`the engine has no image ${relayImage}, which relays run in`, {
    code: 'IMAGE_MISSING',
    kind: 'infrastructure',
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
      return client.end(plainAnswer(503, 'No harness runs.'));
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
