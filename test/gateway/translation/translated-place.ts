import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import type { GatewaySession, SessionRequest } from '../../../src/gateway/gateway.ts';
import type { GatewayOptions } from '../../../src/gateway/gateway-parts.ts';
import { openGateway } from '../../../src/gateway/open-gateway.ts';
import type { Cassette } from '../../../src/gateway/replay/cassette.ts';
import { scriptedUpstream } from '../../../src/gateway/scripted/scripted-upstream.ts';
import { ModelConfig, type Wire } from '../../../src/suite/model-config.ts';
import { sessionRequest } from '../gateway-fixture.ts';
import { type Step, type TestUpstream, testUpstream } from '../test-upstream.ts';
import type { At } from './clients.ts';

/** A gateway on a port of this machine, whose agent may use the model `big`. */
export interface TranslatedPlace extends AsyncDisposable, At {
  session: GatewaySession;
  kept: Map<string, Buffer>;
}

/** The model is a script, which speaks this wire only. */
export async function scriptedPlace(
  wire: Wire,
  script: object,
  more: object = {},
  session: Partial<SessionRequest> = {},
): Promise<TranslatedPlace> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-translation-'));
  const file = join(folder, 'script.yaml');
  writeFileSync(file, JSON.stringify(script));
  const stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true }));
  return at({ scripted: file, wire, ...more }, stack, { session });
}

/** The model is a server that answers with these steps. */
export async function servedPlace(
  wire: Wire,
  model: object,
  ...steps: Step[]
): Promise<TranslatedPlace & { upstream: TestUpstream }> {
  const stack = new AsyncDisposableStack();
  const upstream = stack.use(await testUpstream(...steps));
  const place = await at({ wire, baseUrl: upstream.url, model: 'big-1', ...model }, stack);
  return { ...place, upstream };
}

/** The model is a server that runs already. */
export function placeOf(model: object): Promise<TranslatedPlace> {
  return at(model, new AsyncDisposableStack());
}

/** The model answers from a cassette. */
export async function replayPlace(
  cassette: Cassette,
  session: Partial<SessionRequest> = {},
): Promise<TranslatedPlace> {
  const gateway = { cassette: () => cassette };
  return at({ replay: 'of the test' }, new AsyncDisposableStack(), { session, gateway });
}

async function at(
  model: object,
  stack: AsyncDisposableStack,
  more: { session?: Partial<SessionRequest>; gateway?: Partial<GatewayOptions> } = {},
): Promise<TranslatedPlace> {
  const gateway = stack.use(
    openGateway({
      ...more.gateway,
      models: { big: ModelConfig.parse(model) },
      env: {},
      clock: systemClock,
      scripted: (file) => scriptedUpstream(file, systemClock),
    }),
  );
  const kept = new Map<string, Buffer>();
  const session = stack.use(gateway.open(sessionRequest(kept, more.session)));
  const server = createServer((request, response) => session.handler.request(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stack.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    session,
    kept,
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: session.token('agent'),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
