import { expect, test } from 'vitest';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { connectFleet } from '../../src/fleet/connect.ts';
import { FleetConfig } from '../../src/suite/fleet-config.ts';
import { openFleetPlace } from './fleet-place.ts';
import { makeCertificates, openTlsFront } from './tls-front.ts';

test('a fleet works over mutual TLS, and says what is wrong with a certificate', async () => {
  await using fleet = await openFleetPlace();
  const certificates = await makeCertificates(fleet.place.folder);
  await using front = await openTlsFront(fleet.server.port, certificates);
  const { file } = certificates;
  const right = {
    serverCa: file('server-ca.pem'),
    clientCert: file('client.pem'),
    clientKey: file('client.key'),
  };
  const cases = [{ id: 'a', verify: 'cat done.txt' }];
  const settings = { address: front.address, tls: right, apiKeyEnv: 'TEMPORAL_KEY' };
  const path = fleet.suite({ cases, fleet: settings });
  const env = { TEMPORAL_KEY: 'a-key-that-the-server-ignores' };
  await fleet.worker('one', ['-c', '1'], { address: front.address, env });
  const { exitCode, stderr } = await fleet.command(['run', path], env).ended;
  expect(exitCode, stderr).toBe(0);
  expect([...front.clients]).toEqual(['client']);

  const otherClient = { clientCert: file('other.pem'), clientKey: file('other.key') };
  const missing = { ...right, clientKey: file('missing.key') };
  const plain = { address: fleet.server.address, apiKeyEnv: 'TEMPORAL_KEY' };
  const refused: [given: Record<string, unknown>, reason: RegExp][] = [
    [{ tls: { ...right, serverCa: file('other-ca.pem') } }, /unable to verify|self.signed|issuer/],
    [{ tls: { ...right, ...otherClient } }, /it may refuse this certificate|alert unknown ca/i],
    [{ tls: { serverCa: file('server-ca.pem') } }, /or want one|certificate required|handshake failure/i],
    [{}, /the server speaks TLS, and fleet.tls is not set/],
    [{ tls: missing }, /fleet\.tls\.clientKey.*ENOENT/],
    [{ tls: { ...right, clientKey: file('server.key') } }, /key values mismatch/],
    [{ tls: false, apiKeyEnv: 'TEMPORAL_KEY' }, /in the clear/],
    // A server without TLS does not get the key of a client that has one.
    [plain, /wrong version number|packet length|ECONNRESET|ends the connection/],
  ];
  const reasons = refused.map(async ([given]) => {
    const connecting = connectFleet(FleetConfig.parse({ address: front.address, ...given }), env);
    return await connecting.then(
      () => 'connected',
      (error: unknown) => (error instanceof OffsiteError ? error.message : `unexpected: ${error}`),
    );
  });
  for (const [index, reason] of (await Promise.all(reasons)).entries())
    expect(reason).toMatch(refused[index]?.[1] ?? /never/);
  expect([...front.clients]).toEqual(['client']);
});

test('a certificate without its key is no configuration', () => {
  expect(() => FleetConfig.parse({ tls: { clientCert: 'client.pem' } })).toThrow(/clientCert and clientKey/);
});
