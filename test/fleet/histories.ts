import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Histories of workflows in files. Set `OFFSITE_RECORD_HISTORIES` to write them anew; batches that an earlier
 * version began cannot go on then.
 */
const folder = new URL('histories/', import.meta.url);

export function writeHistory(id: string, history: object): void {
  const plain = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') };
    if (Array.isArray(value)) return value.map(plain);
    if (value === null || typeof value !== 'object') return value;
    const present = Object.entries(value).filter(([, part]) => part !== null && part !== undefined);
    return Object.fromEntries(present.map(([name, part]) => [name, plain(part)]));
  };
  writeFileSync(fileOf(id), `${JSON.stringify(plain(history))}\n`);
}

export function readHistory(id: string): object {
  return JSON.parse(readFileSync(fileOf(id), 'utf8'), (_name, value) =>
    typeof value?.base64 === 'string' ? Buffer.from(value.base64, 'base64') : value,
  );
}

function fileOf(id: string): URL {
  return new URL(`${id.replaceAll('/', '-')}.json`, folder);
}
