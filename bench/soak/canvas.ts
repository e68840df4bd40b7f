import { crc32, deflateSync } from 'node:zlib';
import { advance, dotsOf, height } from './font.ts';

export type Color = readonly [red: number, green: number, blue: number];

export interface Point {
  x: number;
  y: number;
}

/** Pixels a dot of the font is wide and high. */
const dot = 2;
export const textHeight = height * dot;

/** A white picture to draw on; its origin is the upper left corner. */
export class Canvas {
  readonly width: number;
  readonly height: number;
  readonly #pixels: Uint8Array;

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
    this.#pixels = new Uint8Array(width * height * 3).fill(255);
  }

  rectangle({ x, y }: Point, width: number, height: number, color: Color, opacity = 1): void {
    for (let row = y; row < y + height; row++) {
      for (let column = x; column < x + width; column++) this.#blend(column, row, color, opacity);
    }
  }

  /** A line with round ends and soft edges: a pixel is covered by how near it is. */
  line(from: Point, to: Point, color: Color, thickness: number): void {
    const reach = thickness / 2 + 1;
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const squared = dx * dx + dy * dy;
    for (let y = Math.floor(Math.min(from.y, to.y) - reach); y <= Math.max(from.y, to.y) + reach; y++) {
      for (let x = Math.floor(Math.min(from.x, to.x) - reach); x <= Math.max(from.x, to.x) + reach; x++) {
        const along = squared === 0 ? 0 : ((x - from.x) * dx + (y - from.y) * dy) / squared;
        const nearest = Math.min(1, Math.max(0, along));
        const distance = Math.hypot(x - from.x - nearest * dx, y - from.y - nearest * dy);
        this.#blend(x, y, color, Math.min(1, Math.max(0, thickness / 2 + 0.5 - distance)));
      }
    }
  }

  /** Writes a line whose upper edge is at `y`, and which begins, ends or has its middle at `x`. */
  text({ x, y }: Point, text: string, color: Color, align: 'left' | 'right' | 'middle' = 'left'): void {
    const width = textWidth(text);
    const left = Math.round(align === 'left' ? x : align === 'right' ? x - width : x - width / 2);
    for (const at of dotsOf(text)) {
      this.rectangle({ x: left + at.x * dot, y: Math.round(y) + at.y * dot }, dot, dot, color);
    }
  }

  png(): Buffer {
    const header = Buffer.alloc(13);
    header.writeUInt32BE(this.width, 0);
    header.writeUInt32BE(this.height, 4);
    header.set([8, 2], 8); // bits a channel; red, green and blue
    const stride = this.width * 3;
    const rows = Buffer.alloc((stride + 1) * this.height);
    for (let y = 0; y < this.height; y++) {
      // The byte before each row says how it is filtered: not at all.
      rows.set(this.#pixels.subarray(y * stride, (y + 1) * stride), y * (stride + 1) + 1);
    }
    const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    const data = deflateSync(rows, { level: 9 });
    return Buffer.concat([
      signature,
      chunk('IHDR', header),
      chunk('IDAT', data),
      chunk('IEND', Buffer.alloc(0)),
    ]);
  }

  #blend(x: number, y: number, color: Color, opacity: number): void {
    if (opacity <= 0 || x < 0 || y < 0 || x >= this.width || y >= this.height) return;
    const at = (y * this.width + x) * 3;
    for (const [channel, value] of color.entries()) {
      const before = this.#pixels[at + channel] ?? 255;
      this.#pixels[at + channel] = Math.round(before + (value - before) * opacity);
    }
  }
}

function textWidth(text: string): number {
  return Math.max(0, text.length * advance - 1) * dot;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, checksum]);
}
