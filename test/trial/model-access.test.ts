import { expect, test } from 'vitest';
import type { Relay } from '../../src/gateway/relay/relay.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import type { PlannedService } from '../../src/suite/services.ts';
import { reachThrough } from '../../src/trial/prepare/model-port.ts';
import { specOf } from './trial-bench.ts';

test('the services of a case are reached without the proxy that leads to named hosts', () => {
  const services = [{ name: 'db' }, { name: 'tools' }] as PlannedService[];
  const spec = specOf('true', { environment: { ...noEnvironment, services } }, { network: 'allowlist' });
  const variables = reachThrough({ origin: 'http://127.0.0.1:9' } as Relay, spec);
  expect(variables.HTTP_PROXY).toBe('http://127.0.0.1:9');
  expect(variables.NO_PROXY).toBe('127.0.0.1,localhost,db,tools');
  expect(variables.no_proxy).toBe(variables.NO_PROXY);
});
