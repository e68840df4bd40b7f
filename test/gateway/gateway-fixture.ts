import { createHash } from 'node:crypto';
import type { Gateway, GatewaySession, SessionRequest } from '../../src/gateway/gateway.ts';
import type { GatewayOptions } from '../../src/gateway/gateway-parts.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { type GatewayClock, gatewayClock } from './gateway-clock.ts';
import { type Sandbox, sandboxOf } from './sandbox.ts';
import { type Step, type TestUpstream, testUpstream } from './test-upstream.ts';

export const key = 'sk-real"key/9f8e7d6c5b4a';

export interface Place extends AsyncDisposable {
  gateway: Gateway;
  session: GatewaySession;
  sandbox: Sandbox;
  upstream: TestUpstream;
  clock: GatewayClock;
  /** Headers of the agent's requests. */
  agent: { authorization: string };
  /** Bodies that were kept, by their sha256. */
  kept: Map<string, Buffer>;
}

export interface PlaceOptions {
  /** Of the model `big`, beside where it is. */
  model?: object;
  models?: Record<string, object>;
  session?: Partial<SessionRequest>;
  gateway?: Partial<GatewayOptions>;
  random?: number;
}

/**
 * A session whose agent may use the model `big`, alias `large`: a server on this machine that calls it
 * `big-1`.
 */
export async function place(options: PlaceOptions, ...steps: Step[]): Promise<Place> {
  const stack = new AsyncDisposableStack();
  const upstream = stack.use(await testUpstream(...steps));
  const clock = gatewayClock();
  const kept = new Map<string, Buffer>();
  const at = (model: object) =>
    ModelConfig.parse({ wire: 'openai-chat', baseUrl: upstream.url, apiKeyEnv: 'MODEL_KEY', ...model });
  const models = { big: at({ model: 'big-1', aliases: ['large'], ...options.model }), other: at({}) };
  const gateway = stack.use(
    openGateway({
      models: {
        ...models,
        ...Object.fromEntries(Object.entries(options.models ?? {}).map(([name, model]) => [name, at(model)])),
      },
      env: { MODEL_KEY: key },
      clock,
      random: () => options.random ?? 0.5,
      scripted: () => {
        throw new Error('no scripted model here');
      },
      ...options.gateway,
    }),
  );
  const session = stack.use(gateway.open(sessionRequest(kept, options.session)));
  const sandbox = stack.use(sandboxOf(session));
  return {
    gateway,
    session,
    sandbox,
    upstream,
    clock,
    agent: { authorization: `Bearer ${session.token('agent')}` },
    kept,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export function sessionRequest(
  kept: Map<string, Buffer> = new Map(),
  more: Partial<SessionRequest> = {},
): SessionRequest {
  return {
    trial: 'run-1/0',
    models: { agent: ['big'] },
    budget: {},
    hosts: [],
    async keep(body) {
      const sha256 = createHash('sha256').update(body).digest('hex');
      kept.set(sha256, body);
      return sha256;
    },
    ...more,
  };
}

export const question = { model: 'big', messages: [{ role: 'user', content: 'hello' }] };
