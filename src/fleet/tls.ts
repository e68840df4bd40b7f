import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import type { FleetConfig } from '../suite/fleet-config.ts';

/** As Temporal's packages take it: PEM files. */
interface TlsFiles {
  serverRootCACertificate?: Buffer;
  clientCertPair?: { crt: Buffer; key: Buffer };
}

export type FleetTls = TlsFiles | boolean | undefined;

/**
 * Throws `FLEET_TLS_FILE` for a file that cannot be read, and `FLEET_KEY_UNPROTECTED` for a key without TLS.
 */
export function tlsOf({ tls }: FleetConfig, apiKey: string | undefined): FleetTls {
  if (tls === undefined) return apiKey === undefined ? undefined : true;
  if (tls === false && apiKey !== undefined) {
    throw new OffsiteError('the key for Temporal would go over the network in the clear', {
      code: 'FLEET_KEY_UNPROTECTED',
      kind: 'input',
      hint: 'Remove fleet.tls: false, or fleet.apiKeyEnv for a server that needs no key.',
    });
  }
  if (typeof tls === 'boolean') return tls;
  const { serverCa, clientCert, clientKey } = tls;
  return {
    ...(serverCa !== undefined && { serverRootCACertificate: pem('serverCa', serverCa) }),
    ...(clientCert !== undefined &&
      clientKey !== undefined && {
        clientCertPair: { crt: pem('clientCert', clientCert), key: pem('clientKey', clientKey) },
      }),
  };
}

function pem(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new OffsiteError(`cannot read fleet.tls.${name}: ${messageOf(cause)}`, {
      code: 'FLEET_TLS_FILE',
      kind: 'input',
      hint: 'Name a PEM file that this user may read, from the folder of offsite.yaml.',
      cause,
    });
  }
}

/** Milliseconds that a server has to refuse the client's certificate, after it has shown its own. */
const refusalMs = 1_000;

/**
 * Why a server does not answer, as far as TLS is the reason: Temporal's packages only report that it took too
 * long. Never rejects.
 */
export async function tlsTrouble(address: string, tls: FleetTls): Promise<string | undefined> {
  if (tls !== undefined && tls !== false)
    return (await handshake(address, typeof tls === 'object' ? tls : {}, true)).failure;
  const { speaksTls } = await handshake(address, {}, false);
  return speaksTls ? 'the server speaks TLS, and fleet.tls is not set' : undefined;
}

interface Handshake {
  /** What is wrong with the connection; undefined if nothing is. */
  failure: string | undefined;
  speaksTls: boolean;
}

async function handshake(address: string, files: TlsFiles, isVerified: boolean): Promise<Handshake> {
  const [, host = '', port] = /^(.*):(\d+)$/.exec(address) ?? [];
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  let speaksTls = false;
  let socket: TLSSocket | undefined;
  try {
    socket = connect({
      host: host.replace(/^\[(.*)\]$/, '$1'),
      port: Number(port),
      ...(isIP(host) === 0 && { servername: host }),
      ALPNProtocols: ['h2'],
      rejectUnauthorized: isVerified,
      ca: files.serverRootCACertificate,
      cert: files.clientCertPair?.crt,
      key: files.clientCertPair?.key,
    });
    socket.setTimeout(fleetMessages.time.call, () => resolve('the server does not answer'));
    socket.on('error', (error) => resolve(messageOf(error)));
    socket.on('close', () =>
      resolve('the server ends the connection: it may refuse this certificate, or want one'),
    );
    socket.on('secureConnect', () => {
      speaksTls = true;
      // With TLS 1.3 a server looks at the client's certificate only now.
      setTimeout(resolve, refusalMs, undefined);
    });
    return { failure: await promise, speaksTls };
  } catch (error) {
    return { failure: messageOf(error), speaksTls };
  } finally {
    socket?.destroy();
  }
}
