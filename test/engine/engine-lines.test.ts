import { PassThrough, Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { type EngineLine, engineLines } from '../../src/engine/docker/image-streams.ts';

const options = { purpose: 'pull node:24', silenceMs: 60_000 };

async function read(
  stream: Readable,
  more: Partial<Parameters<typeof engineLines>[1]> = {},
): Promise<EngineLine[]> {
  return Array.fromAsync(engineLines(stream, { ...options, ...more }));
}

describe('what an engine says while it pulls or builds', () => {
  test('is read line by line, whatever the pieces it comes in', async () => {
    const bytes = Buffer.from('{"status":"Pulling"}\r\n{"status":"größer"}\n{"aux":{"ID":"sha256:1"}}');
    const single = [...bytes].map((byte) => Buffer.from([byte]));
    expect(await read(Readable.from(single, { objectMode: false }))).toEqual([
      { status: 'Pulling' },
      { status: 'größer' },
      { aux: { ID: 'sha256:1' } },
    ]);
  });

  test('is a failure when the last line says so, although all before went well', async () => {
    const text =
      '{"status":"Pulling"}\n{"status":"Download complete"}\n{"errorDetail":{"message":"no space left"},"error":"x"}';
    await expect(read(Readable.from([text]))).rejects.toThrow('Could not pull node:24: no space left');
  });

  test('is a failure when the engine goes away in the middle', async () => {
    const stream = new PassThrough();
    stream.write('{"status":"Pulling"}\n');
    setImmediate(() => stream.destroy(new Error('socket hang up')));
    await expect(read(stream)).rejects.toMatchObject({ code: 'IMAGE_FAILED', kind: 'infrastructure' });
  });

  test('is a failure if it is empty or not JSON', async () => {
    await expect(read(Readable.from(['\n']))).rejects.toThrow('empty');
    await expect(read(Readable.from(['<html>']))).rejects.toThrow('not JSON');
    await expect(read(Readable.from(['{"status":"Pul']))).rejects.toThrow('not JSON');
  });

  test('is a failure when it falls silent', async () => {
    const stream = new PassThrough();
    stream.write('{"status":"Pulling"}\n');
    await expect(read(stream, { silenceMs: 30 })).rejects.toThrow('said nothing for 0.03 s');
    expect(stream.destroyed).toBe(true);
  });

  test('is no longer read when the user gives up', async () => {
    const stream = new PassThrough();
    stream.write('{"status":"Pulling"}\n');
    const controller = new AbortController();
    setImmediate(() => controller.abort(new Error('enough')));
    await expect(read(stream, { signal: controller.signal })).rejects.toThrow('enough');
  });
});
