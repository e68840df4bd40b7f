export const byteUnits = { k: 1024, m: 1024 ** 2, g: 1024 ** 3 } as const;
export const timeUnits = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;

/** `512m`, `1.5g`, in bytes (k, m and g are powers of 1024); undefined for any other text. */
export function readByteSize(text: string): number | undefined {
  return read(text.toLowerCase(), byteUnits);
}

/** `90s`, `10m`, `500ms`, `2h`, in milliseconds; undefined for any other text. */
export function readDuration(text: string): number | undefined {
  return read(text, timeUnits);
}

/** `90m`, `12h`, `7d`, in milliseconds; undefined for any other text. */
export function readAge(text: string): number | undefined {
  return read(text, { m: timeUnits.m, h: timeUnits.h, d: 24 * timeUnits.h });
}

function read(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([a-z]+)$/.exec(text) ?? [];
  const size = Object.hasOwn(units, unit) ? units[unit] : undefined;
  return size === undefined ? undefined : Math.round(Number(amount) * size);
}
