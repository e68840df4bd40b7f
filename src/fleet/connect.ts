import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { connect, type TLSSocket } from 'node:tls';
import { Client, Connection } from '@temporalio/client';
import type { DataConverter, PayloadCodec } from '@temporalio/common';
import { infrastructureError, inputError, messageOf } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { fleetMessages } from '../bounds/fleet.ts';
import type { FleetConfig } from '../suite/fleet-config.ts';

/** A connection to the Temporal server of a fleet. */
export interface FleetConnection extends AsyncDisposable {
  client: Client;
  connection: Connection;
  fleet: FleetConfig;
  /** What a worker's own connection needs. */
  options: { address: string; tls: FleetTls; apiKey: string | undefined };
  dataConverter: DataConverter;
}

/** Throws `FLEET_UNREACHABLE`, and `input` errors for keys and files that are missing or wrong. */
export async function connectFleet(
  fleet: FleetConfig,
  env: NodeJS.ProcessEnv,
  /** How the server names this process to others. */
  identity = `${hostname()}/${process.pid}`,
): Promise<FleetConnection> {
  const connectTimeout = fleetMessages.time.connect;
  const { address, namespace, codecKeyEnv, apiKeyEnv } = fleet;
  const dataConverter: DataConverter = {
    payloadCodecs: codecKeyEnv === undefined ? [] : [encryptingCodec(keyIn(codecKeyEnv, env))],
  };
  const apiKey = apiKeyEnv === undefined ? undefined : keyIn(apiKeyEnv, env);
  const options = { address, tls: tlsOf(fleet, apiKey), apiKey };
  try {
    const connection = await Connection.connect({ ...withoutUndefined(options), connectTimeout });
    const client = new Client({ connection, namespace, dataConverter, identity });
    return {
      client,
      connection,
      fleet,
      options,
      dataConverter,
      [Symbol.asyncDispose]: () => connection.close(),
    };
  } catch (error) {
    const waited = /connect(ion)? time ?out|deadline/i.test(messageOf(error))
      ? `no answer within ${connectTimeout / 1000} s`
      : messageOf(error);
    const reason = (await tlsTrouble(address, options.tls)) ?? waited;
    throw infrastructureError(
      'FLEET_UNREACHABLE',
      `cannot reach the Temporal server at ${address}: ${reason}`,
      {
        hint: 'Check that it runs, and fleet.address, fleet.tls and fleet.apiKeyEnv of offsite.yaml.',
        cause: error,
      },
    );
  }
}

/** An object without the fields that are undefined. */
export function withoutUndefined<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as Partial<Given>;
}

function keyIn(name: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (value) return value;
  throw inputError('FLEET_KEY_MISSING', `the fleet needs a key, and ${name} is not set`, {
    hint: `Set ${name}, or name another variable in fleet of offsite.yaml.`,
  });
}

type Payload = Parameters<PayloadCodec['encode']>[0][number];

const encoding = 'binary/offsite-aes-256-gcm';
const ivBytes = 12;
const tagBytes = 16;

/**
 * Encrypts everything that Temporal stores, so that its server and its UI see only sizes. Each payload
 * becomes one that consists of an initialization vector, a tag and the encrypted payload.
 *
 * @param key 64 hexadecimal digits. Throws `FLEET_KEY_INVALID` otherwise
 */
export function encryptingCodec(key: string): PayloadCodec {
  if (!/^[0-9a-f]{64}$/i.test(key)) {
    throw inputError('FLEET_KEY_INVALID', 'the key of fleet.codecKeyEnv is not 64 hexadecimal digits', {
      hint: 'Make one with: openssl rand -hex 32. All machines of the fleet need the same.',
    });
  }
  const secret = Buffer.from(key, 'hex');
  return {
    encode: async (payloads) => payloads.map((payload) => encrypted(payload, secret)),
    decode: async (payloads) => payloads.map((payload) => decrypted(payload, secret)),
  };
}

function encrypted({ metadata, data }: Payload, secret: Buffer): Payload {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', secret, iv);
  const names = Object.entries(metadata ?? {}).map(([name, value]) => [name, base64(value)]);
  const plain = JSON.stringify({ metadata: Object.fromEntries(names), data: base64(data) });
  const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
  return {
    metadata: { encoding: Buffer.from(encoding) },
    data: Buffer.concat([iv, cipher.getAuthTag(), sealed]),
  };
}

/** Refuses what is not encrypted: a sender without the key must not give orders. */
function decrypted({ metadata, data }: Payload, secret: Buffer): Payload {
  if (Buffer.from(metadata?.encoding ?? []).toString() !== encoding) {
    throw infrastructureError(
      'FLEET_NOT_ENCRYPTED',
      'Temporal sent something that is not encrypted with the key of the fleet',
      { hint: 'All machines of a fleet need the same key in the variable that fleet.codecKeyEnv names.' },
    );
  }
  const bytes = Buffer.from(data ?? []);
  const plain = opened(bytes, secret);
  const read = parseForeignJson(plain) as { metadata: Record<string, string>; data: string };
  const names = Object.entries(read.metadata).map(([name, value]) => [name, Buffer.from(value, 'base64')]);
  return { metadata: Object.fromEntries(names), data: Buffer.from(read.data, 'base64') };
}

function opened(bytes: Buffer, secret: Buffer): string {
  try {
    const [iv, rest] = [bytes.subarray(0, ivBytes), bytes.subarray(ivBytes)];
    const decipher = createDecipheriv('aes-256-gcm', secret, iv, { authTagLength: tagBytes });
    decipher.setAuthTag(rest.subarray(0, tagBytes));
    return decipher.update(rest.subarray(tagBytes), undefined, 'utf8') + decipher.final('utf8');
  } catch (cause) {
    throw infrastructureError(
      'FLEET_NOT_ENCRYPTED',
      'Temporal sent something that was encrypted with another key, or changed',
      {
        hint: 'All machines of a fleet need the same key in the variable that fleet.codecKeyEnv names.',
        cause,
      },
    );
  }
}

function base64(bytes: Uint8Array | null | undefined): string {
  return Buffer.from(bytes ?? []).toString('base64');
}

/** As Temporal's packages take it: PEM files. */
interface TlsFiles {
  serverRootCACertificate?: Buffer;
  clientCertPair?: { crt: Buffer; key: Buffer };
}

type FleetTls = TlsFiles | boolean | undefined;

/**
 * Throws `FLEET_TLS_FILE` for a file that cannot be read, and `FLEET_KEY_UNPROTECTED` for a key without TLS.
 */
function tlsOf({ tls }: FleetConfig, apiKey: string | undefined): FleetTls {
  if (tls === undefined) return apiKey === undefined ? undefined : true;
  if (tls === false && apiKey !== undefined) {
    throw inputError('FLEET_KEY_UNPROTECTED', 'the key for Temporal would go over the network in the clear', {
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
    throw inputError('FLEET_TLS_FILE', `cannot read fleet.tls.${name}: ${messageOf(cause)}`, {
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
async function tlsTrouble(address: string, tls: FleetTls): Promise<string | undefined> {
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
