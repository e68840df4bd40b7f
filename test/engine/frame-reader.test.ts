import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameReader } from '../../src/engine/docker/frame-reader.ts';
import type { OutputPiece } from '../../src/engine/port/containers.ts';

function frame(stream: 0 | 1 | 2, payload: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(stream, 0);
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

function read(chunks: Buffer[]): { stdout: Buffer; stderr: Buffer } {
  const reader = new FrameReader();
  const pieces: OutputPiece[] = chunks.flatMap((chunk) => [...reader.read(chunk)]);
  reader.end();
  const joined = (stream: string) =>
    Buffer.concat(pieces.filter((piece) => piece.stream === stream).map((piece) => piece.bytes));
  return { stdout: joined('stdout'), stderr: joined('stderr') };
}

/** Cuts at the given places, whatever their order, duplicates and excess. */
function cut(bytes: Buffer, places: number[]): Buffer[] {
  const borders = [
    0,
    ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ];
  return borders.slice(1).map((end, index) => bytes.subarray(borders[index], end));
}

const frames = fc.array(
  fc.record({ stream: fc.constantFrom(1 as const, 2 as const), payload: fc.uint8Array({ maxLength: 40 }) }),
  { maxLength: 12 },
);

test('every byte arrives on its stream and in order, wherever the network cuts', () => {
  fc.assert(
    fc.property(frames, fc.array(fc.nat(600)), (list, places) => {
      const wire = Buffer.concat(list.map(({ stream, payload }) => frame(stream, Buffer.from(payload))));
      const result = read(cut(wire, places));
      for (const [number, name] of [
        [1, 'stdout'],
        [2, 'stderr'],
      ] as const) {
        const sent = Buffer.concat(
          list.filter(({ stream }) => stream === number).map(({ payload }) => payload),
        );
        expect(result[name].equals(sent)).toBe(true);
      }
    }),
  );
});

test('a stream that ends within a frame is an error, never a short output', () => {
  const wire = frame(1, Buffer.from('hello'));
  for (let length = 1; length < wire.length; length += 1) {
    expect(() => read([wire.subarray(0, length)])).toThrow(/cut/);
  }
  expect(read([wire]).stdout.toString()).toBe('hello');
});

test('bytes that are not a frame are an error, never output', () => {
  expect(() => read([Buffer.from('HTTP/1.1 500 oh')])).toThrow(/unknown frame format/);
  expect(() => read([Buffer.from([1, 0, 1, 0, 0, 0, 0, 1, 65])])).toThrow(/unknown frame format/);
});

test('a hundred thousand tiny frames in one chunk are read without recursion', () => {
  const wire = Buffer.concat(Array.from({ length: 100_000 }, () => frame(1, Buffer.from('x'))));
  expect(read([wire]).stdout.length).toBe(100_000);
});
