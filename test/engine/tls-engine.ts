import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { freePort } from '../free-port.ts';
import { authority, certificate } from './certificates.ts';
import { type OwnEngine, ownEngine } from './faults/own-engine.ts';

/** A dockerd of the test's own with --tlsverify, and certificates of two authorities. */
export interface TlsEngine extends AsyncDisposable {
  own: OwnEngine;
  port: number;
  /** `tcp://127.0.0.1:PORT`. */
  host: string;
  /**
   * Folders of certificates. The engine knows the `client`. The `stranger` has a certificate of the other
   * authority, and trusts only that one. `mixed` has the stranger's, and trusts the right one.
   */
  certificates: Record<'client' | 'stranger' | 'mixed', string>;
}

export async function tlsEngine(
  options: Pick<NonNullable<Parameters<typeof ownEngine>[0]>, 'storageDriver'> = {},
): Promise<TlsEngine> {
  const folder = await mkdtemp(join(tmpdir(), 'offsite-tls-'));
  const at = (name: string) => join(folder, name);
  await authority(at('ours'));
  await authority(at('another'));
  await certificate(at('server'), at('ours'), 'subjectAltName=IP:127.0.0.1');
  await certificate(at('client'), at('ours'), 'extendedKeyUsage=clientAuth');
  await certificate(at('stranger'), at('another'), 'extendedKeyUsage=clientAuth');
  await execa('cp', ['-r', at('stranger'), at('mixed')]);
  await execa('cp', [at('ours'), at('mixed/ca.pem')]);
  const port = await freePort();
  const host = `tcp://127.0.0.1:${port}`;
  const own = await ownEngine({
    ...options,
    args: [
      '--host',
      host,
      '--tlsverify',
      '--tlscacert',
      at('server/ca.pem'),
      '--tlscert',
      at('server/cert.pem'),
      '--tlskey',
      at('server/key.pem'),
    ],
  });
  return {
    own,
    port,
    host,
    certificates: { client: at('client'), stranger: at('stranger'), mixed: at('mixed') },
    async [Symbol.asyncDispose]() {
      await own[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
