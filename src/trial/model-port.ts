import type { Engine } from '../engine/engine.ts';
import { plainAnswer } from '../gateway/relay/plain-answer.ts';
import type { Relay, RelayHandler } from '../gateway/relay/relay.ts';
import type { SidecarRequest } from '../gateway/relay/sidecar.ts';
import { startRelay } from '../gateway/relay/start-relay.ts';
import { OffsiteError } from '../offsite-error.ts';
import type { TrialSpec } from './spec.ts';

/** The image of every relay: whatever a sandbox is made of, this one has the Node that a relay needs. */
export const relayImage = 'offsite/base';

/**
 * A sandbox's way out to models and named hosts. It is made with the sandbox, and leads nowhere until its
 * trial has its turn.
 */
export interface ModelPort extends AsyncDisposable {
  relay: Relay;
  /** From now on requests go to `handler`. */
  leadTo(handler: RelayHandler): void;
}

/** Whether a trial's sandbox is to reach anything through the gateway. */
export function needsPort({ modelConfig, sandbox }: TrialSpec): boolean {
  if (sandbox.network === 'none') return false;
  return modelConfig !== undefined || (sandbox.network === 'allowlist' && sandbox.hosts.length > 0);
}

/** The id of the image that relays run in. Throws `IMAGE_MISSING`. */
export async function relayImageOf(engine: Engine, signal: AbortSignal): Promise<string> {
  const image = await engine.findImage(relayImage, signal);
  if (image) return image.id;
  throw new OffsiteError(`the engine has no image ${relayImage}, which relays run in`, {
    code: 'IMAGE_MISSING',
    kind: 'infrastructure',
    hint: 'Make it with: offsite base-image',
  });
}

/** Begins the relay of a sandbox; `relay.ready` tells when it listens. */
export function openPort(
  engine: Engine,
  request: Omit<SidecarRequest, 'handler'>,
  signal: AbortSignal,
): ModelPort {
  let handler: RelayHandler | undefined;
  // Nothing of a trial's runs before its turn; whatever asks then, it is not the harness.
  const first: RelayHandler = {
    request(request, response) {
      return handler ? handler.request(request, response) : response.writeHead(503).end();
    },
    connect(request, client, early) {
      if (handler) return handler.connect(request, client, early);
      return client.end(plainAnswer(503, 'The trial has not begun.'));
    },
  };
  const relay = startRelay(engine, { ...request, handler: first }, signal);
  return {
    relay,
    leadTo(next) {
      handler = next;
    },
    [Symbol.asyncDispose]: () => relay[Symbol.asyncDispose](),
  };
}
