import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { PayloadCodec } from '@temporalio/common';
import { OffsiteError } from '../offsite-error.ts';
import { parseForeignJson } from '../parse-json.ts';

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
    throw new OffsiteError('the key of fleet.codecKeyEnv is not 64 hexadecimal digits', {
      code: 'FLEET_KEY_INVALID',
      kind: 'input',
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
    throw new OffsiteError('Temporal sent something that is not encrypted with the key of the fleet', {
      code: 'FLEET_NOT_ENCRYPTED',
      kind: 'infrastructure',
      hint: 'All machines of a fleet need the same key in the variable that fleet.codecKeyEnv names.',
    });
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
    throw new OffsiteError('Temporal sent something that was encrypted with another key, or changed', {
      code: 'FLEET_NOT_ENCRYPTED',
      kind: 'infrastructure',
      hint: 'All machines of a fleet need the same key in the variable that fleet.codecKeyEnv names.',
      cause,
    });
  }
}

function base64(bytes: Uint8Array | null | undefined): string {
  return Buffer.from(bytes ?? []).toString('base64');
}
