import { systemClock } from '../../src/base/clock.ts';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { GatewaySession } from '../../src/gateway/gateway.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { startRelay } from '../../src/gateway/relay/start-relay.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';

/** A sealed sandbox with a relay to a gateway in this process. */
export interface GatewayPlace extends AsyncDisposable {
  sandbox: Container;
  /** Of the relay, in the sandbox. */
  origin: string;
  session: GatewaySession;
  /** Of the sandbox's agent. */
  token: string;
}

/** `models` are as in a configuration; the agent may use all of them. */
export async function openPlace(
  engine: Engine,
  spec: ContainerSpec,
  models: Readonly<Record<string, object>>,
): Promise<GatewayPlace> {
  const stack = new AsyncDisposableStack();
  const gateway = stack.use(
    openGateway({
      models: Object.fromEntries(
        Object.entries(models).map(([name, model]) => [name, ModelConfig.parse(model)]),
      ),
      env: {},
      clock: systemClock,
      scripted: (file) => {
        throw new Error(`no scripted model is measured, and ${file} is one`);
      },
    }),
  );
  const session = stack.use(
    gateway.open({
      trial: 'bench',
      models: { agent: Object.keys(models) },
      budget: {},
      hosts: [],
      keep: async () => '',
    }),
  );
  const signal = AbortSignal.timeout(60 * 60_000);
  const relay = stack.use(
    startRelay(
      engine,
      {
        network: spec.network,
        image: spec.imageId,
        handler: session.handler,
        labels: {},
        clock: systemClock,
      },
      signal,
    ),
  );
  const sandbox = stack.use(
    await relay.startSandbox((network) => engine.createContainer({ ...spec, network }), signal),
  );
  await relay.ready;
  return {
    sandbox,
    origin: relay.origin,
    session,
    token: session.token('agent'),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
