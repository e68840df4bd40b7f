import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Histories of workflows in files, an event a line. Set `OFFSITE_RECORD_HISTORIES` to write them anew;
 * batches that an earlier version began cannot go on then.
 */
const folder = new URL('histories/', import.meta.url);

export function writeHistory(id: string, { events }: { events?: object[] | null }): void {
  const plain = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') };
    if (Array.isArray(value)) return value.map(plain);
    if (value === null || typeof value !== 'object') return value;
    const present = Object.entries(value).filter(([, part]) => part !== null && part !== undefined);
    return Object.fromEntries(present.map(([name, part]) => [name, plain(part)]));
  };
  writeFileSync(fileOf(id), (events ?? []).map((event) => `${JSON.stringify(plain(event))}\n`).join(''));
}

export function readHistory(id: string): object {
  const revive = (_name: string, value: { base64?: unknown } | null) =>
    typeof value?.base64 === 'string' ? Buffer.from(value.base64, 'base64') : value;
  const lines = readFileSync(fileOf(id), 'utf8').trimEnd().split('\n');
  return { events: lines.map((line) => JSON.parse(line, revive)) };
}

function fileOf(id: string): URL {
  return new URL(`${id.replaceAll('/', '-')}.jsonl`, folder);
}
