/** All payloads in a history, as texts. */
export function payloadsIn(history: unknown): string[] {
  const found: string[] = [];
  const look = (value: unknown): void => {
    if (value instanceof Uint8Array) found.push(Buffer.from(value).toString());
    else if (value !== null && typeof value === 'object') Object.values(value).forEach(look);
    else if (typeof value === 'string') found.push(value);
  };
  look(history);
  return found;
}
