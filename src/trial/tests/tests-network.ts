import { randomBytes } from 'node:crypto';
import type { Gateway, HostConnection } from '../../gateway/gateway.ts';
import { plainAnswer } from '../../gateway/relay/plain-answer.ts';
import type { RelayHandler } from '../../gateway/relay/relay.ts';
import { proxyVariables } from '../model-access.ts';
import type { ModelPort } from '../model-port.ts';
import type { TrialSpec } from '../spec.ts';

/** What tests reach while they run. Disposing ends it. */
export interface TestsNetwork extends AsyncDisposable {
  /** Variables of the tests. */
  env: Record<string, string>;
  /** Ends it, with all of its connections. Resolves with these. */
  end(): Promise<HostConnection[]>;
}

/**
 * Lets tests reach their hosts through the sandbox's port: no model, and nothing else. The proxy takes only
 * requests with a password that is made here. Requests that an agent sent before its end, and requests that
 * wait in a buffer of the sandbox, do not have it.
 */
export async function openTestsNetwork(
  spec: TrialSpec,
  { gateway }: { gateway: Gateway },
  port: ModelPort,
): Promise<TestsNetwork> {
  await port.relay.ready;
  const session = gateway.open({
    trial: `${spec.runId}/${spec.ordinal} tests`,
    ...{ models: {}, budget: {}, hosts: spec.testsHosts ?? [] },
    keep: () => Promise.reject(new Error('tests ask no model')),
  });
  const password = randomBytes(32).toString('base64url');
  const { host } = new URL(port.relay.origin);
  port.routeTo(guarded(session.handler, `Basic ${Buffer.from(`tests:${password}`).toString('base64')}`));
  const end = async () => {
    port.routeTo(undefined);
    await session[Symbol.asyncDispose]();
  };
  return {
    env: proxyVariables(`http://tests:${password}@${host}`, (spec.testsIn ?? spec).environment),
    async end() {
      await end();
      return (await session.account()).connections;
    },
    [Symbol.asyncDispose]: end,
  };
}

function guarded(handler: RelayHandler, credentials: string): RelayHandler {
  const asksFor = { 'proxy-authenticate': 'Basic realm="tests"', connection: 'close' };
  return {
    request(request, response) {
      if (request.headers['proxy-authorization'] === credentials) return handler.request(request, response);
      return response.writeHead(407, asksFor).end();
    },
    connect(request, client, first) {
      if (request.headers['proxy-authorization'] === credentials)
        return handler.connect(request, client, first);
      return client.end(plainAnswer(407, 'Only the tests may use this proxy.'));
    },
  };
}
