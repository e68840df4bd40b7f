import { expect, test } from 'vitest';
import { encryptingCodec } from '../../src/fleet/connect.ts';

const key = '0123456789abcdef'.repeat(4);
const payload = { metadata: { encoding: Buffer.from('json/plain') }, data: Buffer.from('"a trial"') };

test('what was encrypted is read again, and differs each time', async () => {
  const codec = encryptingCodec(key);
  const [one, other] = await codec.encode([payload, payload]);
  if (!one || !other) throw new Error('two payloads were encoded');
  expect(Buffer.from(one.data ?? []).toString()).not.toContain('trial');
  expect(one.data).not.toEqual(other.data);
  const [read] = await codec.decode([one]);
  expect(Buffer.from(read?.data ?? []).toString()).toBe('"a trial"');
  expect(Buffer.from(read?.metadata?.encoding ?? []).toString()).toBe('json/plain');
});

test('what is not encrypted, was changed, or was encrypted with another key is refused', async () => {
  const codec = encryptingCodec(key);
  await expect(codec.decode([payload])).rejects.toThrow(/not encrypted with the key of the fleet/);
  const [sealed] = await codec.encode([payload]);
  if (!sealed) throw new Error('a payload was encoded');
  const changed = Buffer.from(sealed.data ?? []);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  await expect(codec.decode([{ ...sealed, data: changed }])).rejects.toThrow();
  await expect(encryptingCodec('f'.repeat(64)).decode([sealed])).rejects.toThrow();
  expect(() => encryptingCodec('short')).toThrow(/not 64 hexadecimal digits/);
});
