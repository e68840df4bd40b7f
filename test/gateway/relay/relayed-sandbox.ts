import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { systemClock } from '../../../src/base/clock.ts';
import type { ContainerSpec } from '../../../src/engine/container/container-spec.ts';
import type { Container } from '../../../src/engine/container.ts';
import type { Engine } from '../../../src/engine/engine.ts';
import type { Relay, RelayHandler } from '../../../src/gateway/relay/relay.ts';
import { startRelay } from '../../../src/gateway/relay/start-relay.ts';
import { dockerOf } from '../../engine/docker-of.ts';
import { testEngine, testSpec } from '../../engine/engine-fixture.ts';

interface ArrivedRequest {
  request: IncomingMessage;
  response: ServerResponse;
}

interface ArrivedTunnel {
  request: IncomingMessage;
  client: Duplex;
  first: Buffer;
}

/** A sealed sandbox with a relay, whose requests each test answers in its own way. */
export interface RelayedSandbox extends AsyncDisposable {
  engine: Engine;
  sandbox: Container;
  relay: Relay;
  /** Answers the requests that come from now on. */
  answer(listener: RequestListener): void;
  /** The next request that arrives; the test answers it. */
  nextRequest(): Promise<ArrivedRequest>;
  nextTunnel(): Promise<ArrivedTunnel>;
  /**
   * Runs a line of shell in the sandbox, with the relay's origin as $ORIGIN and its port as $PORT; resolves
   * with its output.
   */
  shell(script: string, onOutput?: (text: string) => void, signal?: AbortSignal): Promise<string>;
  /** Runs an ES module in the sandbox the same way. */
  module(source: string, onOutput?: (text: string) => void, signal?: AbortSignal): Promise<string>;
  /** The containers of the relay that exist now. */
  sidecars(): Promise<string[]>;
}

/** Only a hang takes this long. */
export const hangMs = 170_000;

export async function relayedSandbox(given?: Engine): Promise<RelayedSandbox> {
  const engine = given ?? (await testEngine());
  let listener: RequestListener = (_request, response) => response.writeHead(500).end();
  let tunnels = Promise.withResolvers<ArrivedTunnel>();
  const handler: RelayHandler = {
    request: (request, response) => listener(request, response),
    connect: (request, client, first) => tunnels.resolve({ request, client, first }),
  };
  const spec = await testSpec(engine);
  const signal = AbortSignal.timeout(10 * 60_000);
  const relay = startRelay(
    engine,
    {
      network: 'none',
      image: spec.imageId,
      handler,
      labels: { 'test.part': 'relay' },
      clock: systemClock,
    },
    signal,
  );
  const make = (network: ContainerSpec['network']) => engine.createContainer({ ...spec, network });
  const sandbox = await relay.startSandbox(make, signal);
  await relay.ready;
  const run = async (argv: string[], onOutput?: (text: string) => void, signal?: AbortSignal) => {
    const { origin } = relay;
    const result = await sandbox.exec({
      argv,
      env: { ORIGIN: origin, PORT: new URL(origin).port },
      timeoutMs: hangMs,
      signal,
      onOutput: (_stream, bytes) => onOutput?.(bytes.toString()),
    });
    return `${result.stdout.text}${result.stderr.text}${result.ended === 'timed-out' ? '(timed out)' : ''}`;
  };
  return {
    engine,
    sandbox,
    relay,
    answer(next) {
      listener = next;
    },
    nextRequest() {
      const { promise, resolve } = Promise.withResolvers<ArrivedRequest>();
      listener = (request, response) => resolve({ request, response });
      return promise;
    },
    nextTunnel() {
      tunnels = Promise.withResolvers<ArrivedTunnel>();
      return tunnels.promise;
    },
    shell: (script, onOutput, signal) => run(['bash', '-c', script], onOutput, signal),
    module: (source, onOutput, signal) =>
      run(['node', '--input-type=module', '--eval', source], onOutput, signal),
    async sidecars() {
      const filters = { label: [`offsite.instance=${engine.instance}`, 'test.part=relay'] };
      const containers = await dockerOf(engine).listContainers({ all: true, filters });
      return containers.map(({ Id }) => Id);
    },
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    },
  };
}
